"""A loop in tiles on Dask's workers with ``dc.pmap``; one worker is killed, and its tiles run again.

Where Dask is missing, or with ``--processes``, a pool of processes runs them: ``pmap`` makes a new one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc


def tile_of_pi(notes: Path, victim: int, steps: range) -> float:
    """Return a part of the integral of 4 / (1 + x^2); the first process to run the victim's tile dies."""
    number = steps.start // len(steps)
    with open(notes / f"{os.getpid()}", "a") as file:
        file.write(f"{number}\n")
    if number == victim:
        with contextlib.suppress(FileExistsError):
            (notes / "killed").open("x").write(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
    x = (dc.asarray(np.arange(steps.start, steps.stop)) + 0.5) / 1_000_000
    return float((4 / (1 + x * x)).sum() / 1_000_000)


@contextlib.contextmanager
def workers(processes: bool) -> Iterator[Any]:
    """A context with an executor of two Dask workers, or a function that creates a pool of two processes."""
    try:
        if processes:
            raise ImportError
        from dask.distributed import Client, LocalCluster
    except ImportError:
        print("executor: a pool of processes, which pmap makes")
        yield partial(ProcessPoolExecutor, 2)
        return
    print("executor: Dask, two workers")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client.get_executor()


def main() -> None:
    """Run the tiles, and print which of them ran again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", action="store_true", help="a pool of processes, also where Dask is")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, workers(arguments.processes) as executor:
        notes = Path(folder)
        parts = dc.pmap(partial(tile_of_pi, notes, 20), range(1_000_000), 25_000, executor=executor)
        assert parts is not None
        killed = (notes / "killed").read_text()
        runs = Counter(int(k) for path in notes.glob("[0-9]*") for k in path.read_text().split())
    again = sorted(tile for tile, count in runs.items() if count > 1)
    print(f"process {killed} was killed in tile 20; {len(parts)} results, begun again: tiles {again}")
    assert 20 in again and abs(sum(parts) - np.pi) < 1e-9
    print(f"pi is {sum(parts):.10f}, right")


if __name__ == "__main__":
    main()
