"""Runs one rank of a contender: ``[mpiexec -n P] python -m benchmarks.scaling_worker FOLDER CONTENDER P``.

Each rank reads commands from its own pipe in the folder and answers through another, so that idle ranks sleep
instead of waiting in MPI, which would occupy a processor.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .measure import own_cores
from .papers import PROGRAMS, Arrays, Program

_TOLERANCE = 1e-6


class Contender:
    """A contender: here NumPy in this process."""

    rank = 0

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def array(self, values: Any) -> Any:
        """Return a NumPy array converted to this contender's type."""
        return values

    def run(self, program: Program, arguments: Arrays) -> tuple[Any, ...]:
        """Call a program, and return its computed results."""
        return program.run(arguments)

    def copy(self, array: Any) -> Any:
        """Return a copy of an array."""
        return array.copy()

    def whole(self, array: Any) -> Any:
        """Return a NumPy array with all elements of a (distributed) array, at least on rank 0."""
        return np.asarray(array)

    def together(self) -> None:
        """Wait until all ranks have made this call."""

    def settled(self) -> object:
        """Return a value that stays the same once nothing is compiled any more."""
        return None

    def counts(self) -> dict[str, int]:
        """Return the numbers of messages and bytes that this rank has sent and received so far."""
        return {}


class Ours(Contender):
    """dcarray, with one thread a rank; with several ranks all arrays are distributed."""

    def __init__(self, ranks: int) -> None:
        super().__init__(ranks)
        self.dc = importlib.import_module("dcarray")
        self.world = self.dc.comm.world() if ranks > 1 else None
        self.rank = self.world.rank if self.world else 0

    def array(self, values: Any) -> Any:
        made = self.dc.asarray(values).copy()
        self.dc.evaluate(made)
        return made

    def copy(self, array: Any) -> Any:
        made = array.copy()
        self.dc.evaluate(made)  # before the clock runs
        return made

    def run(self, program: Program, arguments: Arrays) -> tuple[Any, ...]:
        found = program.run(arguments)
        self.dc.evaluate(*found)
        return found

    def together(self) -> None:
        if self.world:
            self.world.barrier()

    def settled(self) -> object:
        report = self.dc.report()
        return report.compiles, report.disk_hits, report.interpreted, report.waiting

    def counts(self) -> dict[str, int]:
        return dict(vars(self.world.counts)) if self.world else {}


CONTENDERS: dict[str, type[Contender]] = {"numpy": Contender, "dcarray": Ours}


class Rank:
    """The commands that a rank executes."""

    program: Program
    kept: Arrays

    def __init__(self, contender: str, ranks: int) -> None:
        self.contender = CONTENDERS[contender](ranks)

    def bind(self, first: int, count: int) -> dict[str, Any]:
        """Bind each of the job's ranks to one core, from core `first` on, if there are `count` cores.

        Otherwise the system may schedule two ranks on one core for a second while another is free.
        """
        cores = own_cores()
        if count <= len(cores):
            os.sched_setaffinity(0, {cores[first + self.contender.rank]})
        return {}

    def load(self, name: str, sizes: dict[str, int]) -> dict[str, Any]:
        """Create a program's arguments."""
        (self.program,) = (p for p in PROGRAMS if p.name == name)
        wrap = self.contender.array
        self.kept = {
            name: wrap(v) if isinstance(v, np.ndarray) else v for name, v in self.program.make(sizes)
        }
        return {}

    def _once(self) -> tuple[float, tuple[Any, ...]]:
        """Call the program with new arguments; return seconds and results."""
        given = dict(self.kept)
        for name in self.program.writes:
            given[name] = self.contender.copy(given[name])
        self.contender.together()
        start = time.perf_counter()
        found = self.contender.run(self.program, given)
        return time.perf_counter() - start, found

    def write(self, folder: str) -> dict[str, Any]:
        """Save the results of one call, as the reference for other contenders."""
        seconds, found = self._once()
        for k, array in enumerate(found):
            np.save(Path(folder) / f"{k}.npy", self.contender.whole(array))
        return {"seconds": seconds}

    def check(self, folder: str) -> dict[str, Any]:
        """Compare the results of one call with the saved ones; return the largest relative error."""
        seconds, found = self._once()
        error = 0.0
        for k, array in enumerate(found):
            got = self.contender.whole(array)
            if self.contender.rank == 0:
                wanted = np.load(Path(folder) / f"{k}.npy", mmap_mode="r")
                if got.shape != wanted.shape:
                    return {"wrong": f"result {k} has shape {got.shape} instead of {wanted.shape}"}
                scale = float(np.max(np.abs(wanted), initial=0.0)) or 1.0
                error = max(error, float(np.max(np.abs(got - wanted), initial=0.0)) / scale)
        wrong = {"wrong": f"relative error {error:.1e}"} if not error <= _TOLERANCE else {}
        return {"seconds": seconds, "error": error, **wrong}

    def warm(self, seconds: float) -> dict[str, Any]:
        """Call until nothing is compiled any more, at least twice.

        All ranks call as often: by the number of calls, not by their clocks.
        """
        first, _ = self._once()
        calls = 2 if first > seconds / 4 else 6
        state, steady = self.contender.settled(), 0
        for _ in range(calls):
            seconds, _ = self._once()
            steady, state = (steady + 1 if self.contender.settled() == state else 0), self.contender.settled()
        return {"settled": steady >= 1, "calls": calls + 1, "seconds": seconds}

    def run(self, calls: int) -> dict[str, Any]:
        """Time some calls; messages and bytes are those of the last."""
        times = []
        before = self.contender.counts()
        for _ in range(calls):
            before = self.contender.counts()
            times.append(self._once()[0])
        after = self.contender.counts()
        return {"times": times, "counts": {k: after[k] - before[k] for k in after}}

    # ---- what the machine can do -----------------------------------------------------------------
    def messages(self, sizes: list[int], rounds: int) -> dict[str, Any]:
        """Messages to and fro between ranks 0 and 1: seconds one way, and of each of eight more at once."""
        world = self.contender.world  # type: ignore[attr-defined]
        return {"points": [(n, _there_and_back(world, n, 1, rounds)) for n in sizes],
                "burst": _there_and_back(world, 8, 9, rounds)}  # fmt: skip

    def rates(self, mbytes: int, rounds: int) -> dict[str, Any]:
        """Bytes and operations a second while all ranks do the same."""
        source, target = np.ones(mbytes << 17), np.ones(mbytes << 17)
        few, there = np.ones(1 << 15), np.ones(1 << 15)
        square = np.ones((1000, 1000))

        def again() -> None:
            for _ in range(200):
                np.copyto(there, few)

        return {
            "memory": 2 * source.nbytes / self._best(lambda: np.copyto(target, source), rounds),
            "cache": 400 * few.nbytes / self._best(again, rounds),
            "flops": 2e9 / self._best(lambda: square @ square, rounds),
        }  # fmt: skip

    def _best(self, job: Callable[[], object], rounds: int) -> float:
        times = []
        for _ in range(rounds):
            self.contender.together()
            start = time.perf_counter()
            job()
            times.append(time.perf_counter() - start)
        return min(times)


def _there_and_back(world: Any, nbytes: int, count: int, rounds: int) -> float:
    """Seconds that messages sent together take one way, the least of some rounds."""
    parts = [np.ones(nbytes, np.uint8) for _ in range(count)]
    peer, times = 1 - world.rank, []
    for _ in range(rounds + 1):
        world.barrier()
        start = time.perf_counter()
        for sending in (world.rank == 0, world.rank == 1):
            move = world.isend if sending else world.irecv
            world.waitall([move([part], peer, 0) for part in parts])
        times.append((time.perf_counter() - start) / 2)
    return min(times[1:])


def main() -> int:
    """Serve commands until the pipe says that there are no more."""
    folder, name, ranks = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    rank = Rank(name, ranks)
    me = rank.contender.rank
    with open(folder / f"to{me}") as commands, open(folder / f"from{me}", "w") as answers:
        for line in commands:
            action, arguments = json.loads(line)
            if action == "end":
                break
            try:
                answer = getattr(rank, action)(*arguments)
            except Exception as problem:
                answer = {"wrong": f"{type(problem).__name__}: {problem}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # threads end with the job
