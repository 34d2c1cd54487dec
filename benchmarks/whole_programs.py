"""Runs of scripts in separate processes: their output and time, and the comparison of two outputs."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ACCELERATED", "Outcome", "difference", "run", "scripts_named"]

_ROOT = Path(__file__).resolve().parents[1]
#: What stands between the interpreter and the script for it to be accelerated.
ACCELERATED = ("-m", "dcarray", "run")
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:inf|nan)\b)")
_RAISED = re.compile(r"[\w.]+(?:Error|Exception|Interrupt|Exit)\b")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a script: seconds from start to end, output, and the problem or ""."""

    seconds: float
    output: str
    problem: str = ""


def run(
    script: Path,
    words: tuple[str, ...] = (),
    *,
    folder: str,
    cache: str,
    limit: float,
    settings: Mapping[str, str] = types.MappingProxyType({}),
) -> Outcome:
    """Run a script in a working folder and a new session to its end, and return the outcome.

    ``cache`` is dcarray's cache folder, ``settings`` are further environment variables.  The
    time includes that of child processes that inherit the script's output, as in a shell's pipe.
    """
    start = time.perf_counter()
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH", ""))))
    process = subprocess.Popen(
        [sys.executable, *words, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "DCARRAY_CACHE_DIR": cache, **settings}, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return Outcome(time.perf_counter() - start, output.decode(), f"not ready after {limit:g} s")
    seconds = time.perf_counter() - start
    problem = _failure(errors.decode(), process.returncode) if process.returncode else ""
    return Outcome(seconds, output.decode(), problem)


def _failure(errors: str, status: int) -> str:
    """Return the line of a traceback that names the error, or the last line."""
    lines = [line for line in errors.splitlines() if line.strip()] or [f"exit status {status}"]
    return next((line for line in reversed(lines) if _RAISED.match(line)), lines[-1])


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield each number of a text with the words before it, and the words after the last number."""
    end = 0
    for found in _NUMBER.finditer(text):
        yield " ".join(text[end : found.start()].split()), found.group()
        end = found.end()
    yield " ".join(text[end:].split()), ""


def _close(a: str, b: str, rtol: float, atol: float) -> bool:
    if a == b or not a or not b:
        return a == b
    x, y = float(a), float(b)
    return math.isclose(x, y, rel_tol=rtol, abs_tol=atol) or (math.isnan(x) and math.isnan(y))


def difference(expected: str, got: str, rtol: float = 1e-5, atol: float = 1e-8) -> str:
    """Return text that says where an output first differs from the expected one, or "".

    Numbers may differ by the tolerances; all else, apart from white space, may not.
    """
    for (before, a), (after, b) in zip(_parts(expected), _parts(got), strict=False):  # the last has no number
        if before != after or not _close(a, b, rtol, atol):
            return f"{f'{after} {b}'.strip()[-60:]!r} instead of {f'{before} {a}'.strip()[-60:]!r}"
    return ""


def scripts_named(folder: Path, words: Sequence[str]) -> list[Path]:
    """Return the scripts in a folder whose names hold one of the words, or all where there are no words."""
    scripts = sorted(folder.resolve().glob("*.py"))
    return [script for script in scripts if any(word in script.stem for word in words or ("",))]
