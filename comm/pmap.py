"""A parallel loop over tiles (parts of the iterations) with dynamic scheduling by rank 0.

AutoMPHC's ``pfor`` (Shirako and others, 2022) cuts a loop into tiles that run as tasks of a distributed
runtime.  Here ranks run the tiles.  Rank 0 answers each request for tiles with a share of the remaining ones,
so that there are few requests at first and small shares in the end, and runs tiles itself in between
(guided self-scheduling: Polychronopoulos and Kuck, IEEE Transactions on Computers 36 (12), 1987).
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dcarray.comm.algorithms.executor_tiles import Source, run_tiles
from dcarray.comm.transport.errors import LostRankError, TileError
from dcarray.comm.transport.objects import gather_objects, pack, receive_object, send_object
from dcarray.comm.transport.protocol import INTERNAL_TAG, Array, Communicator, Request

from .cart import Ranks, ranks_of

__all__ = ["pmap"]

_SHARE_DIVISOR = 2  # a request gets the remaining tiles divided by this times the number of ranks
_PROGRESS_INTERVAL = 1.0  # seconds between two lines about progress

Progress = Callable[[int, int], None]
Exceptions = type[Exception] | tuple[type[Exception], ...]


def pmap(
    function: Callable[[Any], Any],
    tiles: Iterable[Any],
    size: int | None = None,
    *,
    schedule: str = "dynamic",
    root: int | None = None,
    retry: Exceptions = (),
    attempts: int = 3,
    progress: bool | Progress = False,
    comm: Ranks = None,
    executor: Source | None = None,
) -> list[Any] | None:
    """Call a function for each tile of a loop, in parallel, and return the results.

    Parameters
    ----------
    function : callable
        Called with a tile, returns its result; must not use collective operations.
    tiles : iterable
        The tiles, the same number on all ranks; or, with ``size``, the range, list or array that is cut into
        tiles.
    size : int, optional
        Number of elements of ``tiles`` in one tile, which is a slice; the last tile may have fewer.
    schedule : {"dynamic", "static"}
        "dynamic": rank 0 assigns tiles on request; "static": each rank runs an equal part.
    root : int, optional
        The rank that gets the results; by default all ranks get them.
    retry : exception or tuple of exceptions
        A tile that raises one of these is run again, perhaps on another rank.
    attempts : int
        The largest number of times that one tile is run.
    progress : bool or callable
        A function called on the first rank with the number of tiles done and of all tiles; True writes lines
        to standard error.  With a static schedule only the first rank's own tiles are counted.
    comm : Communicator or Cart, optional
        The ranks, by default all; each of them has to call `pmap`.
    executor : concurrent.futures.Executor or callable, optional
        Runs the tiles instead of the ranks: a pool of processes or threads, mpi4py's, Dask's
        (``client.get_executor()``), or any object with such a ``submit``.  If it is a class or a function
        that returns a pool, `pmap` creates one and shuts it down in the end, and replaces it if it breaks,
        with up to ``attempts`` pools.  Only the process that calls `pmap` gets the results.

    Returns
    -------
    list or None
        The results in the order of the tiles; None on ranks other than `root`.  NumPy arrays in the results,
        nested ones included, are sent without a copy, everything else is pickled.

    Raises
    ------
    TileError
        On all ranks, if a tile has failed: the message has the traceback, the attribute ``tile`` the tile.
        Or if an executor has broken, for example because a worker process was killed: the message lists the
        tiles without a result.
    ValueError
        If ``schedule`` is neither of the two, or ``size`` or ``attempts`` is less than 1; or if an executor
        is given together with ``schedule``, ``root`` or ``comm``, which are for ranks.
    TypeError
        If ``executor`` is not an executor and does not return one.
    MismatchError
        If ranks disagree on the number of tiles or on the schedule.

    Notes
    -----
    Rank 0 answers requests for tiles only between its own tiles.  After a tile has failed, ranks finish the
    tiles that are assigned to them.  If a rank dies and the others can go on (simulated ranks can, under
    MPI the launcher ends all), its tiles are run again, unless it is rank 0 or the schedule is static: then
    `pmap` fails.

    Examples
    --------
    >>> import dcarray as dc
    >>> dc.pmap(lambda tile: sum(tile), range(10), size=4)
    [6, 22, 17]
    """
    held = _cut(tiles, size)
    if schedule not in ("dynamic", "static"):
        raise ValueError(f"schedule={schedule!r}: must be dynamic or static")
    if attempts < 1:
        raise ValueError(f"attempts={attempts}: a tile is run once at least")
    show = _print_progress if progress is True else progress or None
    if executor is not None:
        if (schedule, root, comm) != ("dynamic", None, None):
            raise ValueError("executor=...: schedule, root and comm are for ranks, and an executor has none")
        report = _Reports(show, len(held)).report
        return run_tiles(executor, function, held, retry, attempts, report)
    group = ranks_of(comm)
    group.step(("pmap", len(held), schedule, root, attempts))
    work = _Work(group, function, held, retry, attempts, show if group.rank == 0 else None)
    alive = list(range(group.size))
    if schedule == "static" or group.size == 1:
        work.run(_part(len(held), group.rank, group.size))
    elif group.rank == 0:
        alive = _Dispatcher(work).serve()
    else:
        alive = _request_tiles(work)
    return _combine_results(work, alive, root)


def _cut(tiles: Iterable[Any], size: int | None) -> Sequence[Any]:
    if size is None:
        return list(tiles)
    if size < 1:
        raise ValueError(f"size={size}: a tile has one element at least")
    whole: Any = tiles if hasattr(tiles, "__getitem__") and hasattr(tiles, "__len__") else list(tiles)
    return [whole[k : k + size] for k in range(0, len(whole), size)]


def _part(tiles: int, rank: int, ranks: int) -> deque[int]:
    return deque(range(tiles * rank // ranks, tiles * (rank + 1) // ranks))


def _print_progress(done: int, tiles: int) -> None:
    print(f"pmap: {done:,} of {tiles:,} tiles", file=sys.stderr, flush=True)


class _Reports:
    """The reporter of progress: calls the user's function, or writes lines."""

    def __init__(self, show: Progress | None, tiles: int) -> None:
        self._show, self._tiles, self._last = show, tiles, time.monotonic()

    def report(self, done: int) -> None:
        """Report that `done` tiles are done; lines of text are written once per interval at most."""
        if self._show is not None and (
            self._show is not _print_progress
            or done == self._tiles
            or time.monotonic() > self._last + _PROGRESS_INTERVAL
        ):
            self._last = time.monotonic()
            self._show(done, self._tiles)


# ---- the tiles of one rank ---------------------------------------------------------------------------
class _Failure:
    """A tile that failed in its last attempt."""

    def __init__(self, tile: int, rank: int, text: str) -> None:
        self.tile, self.rank, self.text = tile, rank, text


class _Work:
    """The tiles of a loop, with the results and failures of those that this rank has run."""

    def __init__(
        self,
        comm: Communicator,
        function: Callable[[Any], Any],
        tiles: Sequence[Any],
        retry: Exceptions,
        attempts: int,
        show: Progress | None,
    ) -> None:
        self.comm, self.tiles = comm, tiles
        self._function, self._retry, self._attempts = function, retry, attempts
        self.results: dict[int, Any] = {}
        self.failures: list[_Failure] = []
        self._error: Exception | None = None
        self.tries: Counter[int] = Counter()
        self.report_progress = _Reports(show, len(tiles)).report

    def run(self, mine: deque[int]) -> None:
        """Run tiles until none are left or one has failed."""
        while mine and not self.failures:
            self.run_tile(mine.popleft())
            self.report_progress(len(self.results))

    def run_tile(self, tile: int) -> None:
        """Run a tile, again after an exception in `retry`, up to the allowed number of attempts."""
        while tile not in self.results:
            self.tries[tile] += 1
            try:
                self.results[tile] = self._function(self.tiles[tile])
            except Exception as error:
                if isinstance(error, self._retry) and self.tries[tile] < self._attempts:
                    continue
                self.fail(tile, error)
                return

    def fail(self, tile: int, error: Exception) -> None:
        """Record that a tile has failed and is not run again."""
        text = "".join(traceback.format_exception(error))
        self.failures.append(_Failure(tile, self.comm.rank, text))
        self._error = error

    def pack_results(self) -> tuple[bytes, list[Array]]:
        """Return the results packed for sending; a result that cannot be pickled makes its tile fail."""
        try:
            return pack(self.results)
        except Exception:
            for tile, result in self.results.items():
                try:
                    pack(result)
                except Exception as error:
                    self.fail(tile, error)
                    return b"", []
            raise

    def error_of(self, failure: _Failure) -> TileError:
        """Return the exception that all ranks raise for a failure."""
        tile = self.tiles[failure.tile]
        text = f"tile {failure.tile}, {tile!r:.200}, failed on rank {failure.rank}:\n{failure.text}"
        error = TileError(text, tile)
        if failure.rank == self.comm.rank:
            error.__cause__ = self._error
        return error


# ---- scheduling --------------------------------------------------------------------------------------
def _request_tiles(work: _Work) -> list[int]:
    """Request tiles from rank 0 and run them until none are left; return the ranks that are alive."""
    comm = work.comm
    done: list[int] = []
    while True:
        length = np.array(0)
        answer = comm.irecv([length], 0, INTERNAL_TAG)
        comm.waitall(send_object(comm, 0, (done, bool(work.failures))))
        comm.waitall([answer])
        tiles: list[int]
        alive: list[int]
        tiles, alive = receive_object(comm, 0, length)
        if alive:
            return alive
        known = set(work.results)
        work.run(deque(tiles))
        done = sorted(work.results.keys() - known)


class _Dispatcher:
    """The part of rank 0: it assigns tiles to ranks and runs some itself."""

    def __init__(self, work: _Work) -> None:
        self._work, self._comm = work, work.comm
        self._remaining = deque(range(len(work.tiles)))
        self._alive = list(range(work.comm.size))
        self._assigned: dict[int, list[int]] = {rank: [] for rank in self._alive}
        self._done: dict[int, set[int]] = {rank: set() for rank in self._alive}
        self._idle: set[int] = set()
        self._lengths: dict[int, Array] = {}
        self._requests: dict[int, Request] = {}
        self._replies: dict[int, list[Request]] = {rank: [] for rank in self._alive}
        self._failed = False

    def serve(self) -> list[int]:
        """Assign tiles until all are done or one has failed; return the ranks that are alive."""
        for rank in self._alive[1:]:
            self._expect_request(rank)
        while not (over := self._is_over()) or len(self._idle) < len(self._alive) - 1:
            self._answer_requests(wait=over or not self._remaining)
            if self._remaining and not self._is_over():
                self._work.run_tile(self._remaining.popleft())
                self._report_progress()
        for rank in sorted(self._idle):
            self._send_tiles(rank, [], self._alive)
        for rank in self._idle:
            self._comm.waitall(self._replies[rank])
        return self._alive

    def _is_over(self) -> bool:
        undone = self._remaining or any(self._assigned.values())
        return self._failed or bool(self._work.failures) or not undone

    def _report_progress(self) -> None:
        self._work.report_progress(len(self._work.results) + sum(map(len, self._done.values())))

    def _expect_request(self, rank: int) -> None:
        self._lengths[rank] = np.array(0)
        self._requests[rank] = self._comm.irecv([self._lengths[rank]], rank, INTERNAL_TAG)

    def _answer_requests(self, wait: bool) -> None:
        """Receive the requests that have arrived, or wait for one, and send tiles to ranks without any."""
        ranks = sorted(self._requests)
        if ranks:
            for k in self._comm.ready([self._requests[rank] for rank in ranks], wait):
                self._take_report(ranks[k])
        for rank in sorted(self._idle) if self._remaining and not self._is_over() else ():
            share = len(self._remaining) // (_SHARE_DIVISOR * len(self._alive)) or 1
            self._assigned[rank] = [
                self._remaining.popleft() for _ in range(min(share, len(self._remaining)))
            ]
            if self._assigned[rank]:
                self._idle.remove(rank)
                self._send_tiles(rank, self._assigned[rank], [])
                self._expect_request(rank)

    def _take_report(self, rank: int) -> None:
        """Receive what a rank reports with its request for tiles, and note that it waits for more."""
        request = self._requests.pop(rank)
        try:
            self._comm.waitall([*self._replies[rank], request])
            done, failed = receive_object(self._comm, rank, self._lengths[rank])
        except LostRankError:
            self._requeue(rank)
            return
        self._done[rank].update(done)
        self._assigned[rank] = []
        self._failed = self._failed or failed
        self._idle.add(rank)
        self._report_progress()

    def _requeue(self, rank: int) -> None:
        """Return all tiles of a dead rank to the queue, including those it had run: their results are
        lost."""
        self._remaining.extendleft(sorted({*self._assigned.pop(rank), *self._done.pop(rank)}, reverse=True))
        self._alive.remove(rank)

    def _send_tiles(self, rank: int, tiles: list[int], alive: list[int]) -> None:
        self._replies[rank] = send_object(self._comm, rank, (tiles, alive))


# ---- results -----------------------------------------------------------------------------------------
def _combine_results(work: _Work, alive: list[int], root: int | None) -> list[Any] | None:
    """Return the results of all ranks in the order of tiles; a failure is raised on all of them."""
    group = work.comm if len(alive) == work.comm.size else work.comm.sub(alive)
    if root is not None and root not in alive:
        raise LostRankError(f"rank {root}, which was to get the results of pmap, is lost")
    packed = work.pack_results() if group.size > 1 else (b"", [])
    failures = np.array(len(work.failures))
    group.allreduce(failures, failures, "sum")
    if failures:
        known = gather_objects(group, work.failures, pack(work.failures), None)
        assert known is not None
        raise work.error_of(min((one for some in known for one in some), key=lambda one: one.tile))
    gathered = gather_objects(group, work.results, packed, None if root is None else alive.index(root))
    if gathered is None:
        return None
    results = {tile: result for some in gathered for tile, result in some.items()}
    return [results[tile] for tile in range(len(work.tiles))]
