"""Waiting until the output of a process has been read."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WRITES = """
import os, sys
from dcarray.comm.transport.pending_output import wait_until_read
sys.stderr.write("x" * 3000)
print("read" if wait_until_read({patience}) else "left", file=open({answer!r}, "w"))
"""


def started(patience: float, answer: Path, stderr: int | None) -> subprocess.Popen[str]:
    line = WRITES.format(patience=patience, answer=str(answer))
    return subprocess.Popen([sys.executable, "-c", line], stderr=stderr, text=True, cwd=ROOT)


def test_a_pipe_that_nobody_reads_is_waited_for_so_long(tmp_path: Path) -> None:
    with started(0.2, tmp_path / "answer", subprocess.PIPE) as process:
        process.wait(60)
        assert process.stderr is not None
        assert process.stderr.read() == "x" * 3000
    assert (tmp_path / "answer").read_text() == "left\n"


def test_a_pipe_that_is_read_is_waited_for(tmp_path: Path) -> None:
    with started(60, tmp_path / "answer", subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.read(3000) == "x" * 3000
        process.wait(50)
    assert (tmp_path / "answer").read_text() == "read\n"


@pytest.mark.parametrize("target", [subprocess.DEVNULL, None])
def test_what_is_no_pipe_is_not_waited_for(target: int | None, tmp_path: Path) -> None:
    with (
        (tmp_path / "errors").open("w") as file,
        started(60, tmp_path / "answer", file.fileno() if target is None else target) as process,
    ):
        process.wait(50)
    assert (tmp_path / "answer").read_text() == "read\n"
