"""Python in a process of its own."""

import os
import subprocess
import sys
from typing import Any


def python(
    *words: Any, status: int | None = 0, timeout: float = 300, cwd: Any = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What a command line of Python has done; `status` is the exit status that it has to have, if any."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=timeout, cwd=cwd,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done
