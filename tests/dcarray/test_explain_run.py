"""``python -m dcarray run --explain FILE``: the regions of sites that have run as compiled code."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """\
import time
import numpy as np
import dcarray as dc


def step(x):
    y = np.sqrt(x) + 1.0
    return y * 0.5


x = np.ones(50_000)
end = time.monotonic() + 60
while not dc.report().runs and time.monotonic() < end:
    x = step(x)
"""


def test_regions_of_sites(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "dcarray", "run", "--explain=out.txt", "script.py"]
    env = {**os.environ, "DCARRAY_JIT": "background"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0 and "regions saved" in done.stderr, done.stderr
    text = (tmp_path / "out.txt").read_text()
    assert "sqrt(x[i])" in text and "script.py:7" in text, text
