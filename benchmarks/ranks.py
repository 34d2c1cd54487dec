"""Jobs of several ranks, each of which waits, asleep, for commands from its own pipe."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Job", "launcher", "wrong"]

_ROOT = Path(__file__).resolve().parents[1]
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "DCARRAY_THREADS")


def launcher(python: str) -> str | None:
    """Return the ``mpiexec`` in an interpreter's folder, or that on the path; None if there is none."""
    beside = Path(python).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


class Job:
    """The ranks of one contender (see `scaling_worker`), with one thread each.

    Parameters
    ----------
    contender : str
    ranks : int
    python : str
        The contender's interpreter.
    under_mpi : bool
        Whether each rank is a process of an MPI job; otherwise there is one process.
    env : mapping, optional
        Additional environment variables.

    Raises
    ------
    RuntimeError
        When there is no ``mpiexec``.
    """

    def __init__(
        self, contender: str, ranks: int, python: str, under_mpi: bool, env: Mapping[str, str] | None = None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        processes = ranks if under_mpi else 1
        ends = []
        for way in ("to", "from"):
            for rank in range(processes):
                path = os.path.join(self._folder.name, f"{way}{rank}")
                os.mkfifo(path)
                # For both ways: opening does not wait for the other end, nor does an end that closes count.
                ends.append(os.open(path, os.O_RDWR))
        self._to, self._from = ends[:processes], ends[processes:]
        self._rest = [b""] * processes
        command = [python, "-m", "benchmarks.scaling_worker", self._folder.name, contender, str(ranks)]
        if under_mpi:
            starter = launcher(python)
            if starter is None:
                raise RuntimeError("there is no mpiexec")
            command = [starter, "-n", str(ranks), *command]
        one = dict.fromkeys(_ONE_THREAD, "1")
        self._errors = open(os.path.join(self._folder.name, "said"), "w+b")  # noqa: SIM115 - closed with the job
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            env={**os.environ, **one, "PYTHONPATH": str(_ROOT), **(env or {})},
            cwd=self._folder.name,
            start_new_session=True,
        )

    def ask(self, action: str, *arguments: object, limit: float) -> list[dict[str, Any]]:
        """Send a command; return all ranks' answers, or one ``{"wrong": ...}`` if the job ends or is late."""
        self.tell(action, *arguments)
        return self.hear(limit)

    def tell(self, action: str, *arguments: object) -> None:
        """Send a command to every rank without waiting."""
        line = json.dumps([action, arguments]).encode() + b"\n"
        for end in self._to:
            os.write(end, line)

    def hear(self, limit: float) -> list[dict[str, Any]]:
        """Return every rank's answer to the last command; see `ask`."""
        stop = time.monotonic() + limit
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(self._from):
            lacking = [rank for rank in range(len(self._from)) if rank not in answers]
            ready = select.select([self._from[rank] for rank in lacking], [], [], 0.2)[0]
            for rank in lacking:
                if self._from[rank] in ready:
                    self._rest[rank] += os.read(self._from[rank], 1 << 16)
                if b"\n" in self._rest[rank]:
                    text, self._rest[rank] = self._rest[rank].split(b"\n", 1)
                    answers[rank] = json.loads(text)
            if not ready and self._child.poll() is not None:
                return [{"wrong": f"ended with status {self._child.returncode}: {self._said()}"}]
            if any("wrong" in answer for answer in answers.values()) and len(answers) < len(self._from):
                stop = min(stop, time.monotonic() + 5)  # the others may wait for one that has failed
            if time.monotonic() > stop:
                wrong = [answer for answer in answers.values() if "wrong" in answer]
                self.close()
                return wrong or [{"wrong": f"not ready after {limit:g} s"}]
        return [answers[rank] for rank in sorted(answers)]

    def _said(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the job, and all processes that it has started."""
        if self._child.poll() is None:
            for end in self._to:
                os.write(end, b'["end", []]\n')
            try:
                self._child.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self._child.pid, signal.SIGKILL)
                self._child.wait()
        for end in [*self._to, *self._from]:
            os.close(end)
        self._to, self._from = [], []
        self._errors.close()
        self._folder.cleanup()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        if self._to:
            self.close()


def wrong(answers: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the error of the first answer with one, or None."""
    return next((str(answer["wrong"]) for answer in answers if "wrong" in answer), None)
