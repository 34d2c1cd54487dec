"""Running of a parallel loop's tiles on an executor: a pool of processes or threads, mpi4py's, or Dask's."""

from __future__ import annotations

import traceback
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, TypeAlias

from dcarray.comm.transport.errors import TileError

__all__ = ["run_tiles"]

Source: TypeAlias = Executor | Callable[[], Executor]
_SHOWN = 20  # numbers of missing tiles in a message


def run_tiles(
    source: Source,
    function: Callable[[Any], Any],
    tiles: Sequence[Any],
    retry: type[Exception] | tuple[type[Exception], ...],
    attempts: int,
    progress: Callable[[int], None],
) -> list[Any]:
    """Return the results ``function(tile)`` of all tiles in order.

    `source` is an executor, or a function that makes one; a pool that `source` has made is replaced if it
    breaks. A tile that raises `retry` is tried up to `attempts` times; `progress` is called with the number
    of results."""
    ours = isinstance(source, type) or not hasattr(source, "submit")
    if ours and not callable(source):
        raise TypeError(f"executor={source!r}: must have `submit`, or be a function that returns such a pool")
    work = _Work(function, tiles, retry, attempts, progress)
    for left in reversed(range(attempts if ours else 1)):
        pool: Any = source() if ours else source  # type: ignore[operator]  # a function, as asked above
        try:
            broken = work.run(pool)
        finally:
            if ours:
                pool.shutdown(cancel_futures=True)
        if broken is None:
            break
        if not left:
            raise work.lost(broken, attempts if ours else 1) from broken
    return [work.results[tile] for tile in range(len(tiles))]


class _Work:
    """The tiles, with the results so far."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        tiles: Sequence[Any],
        retry: type[Exception] | tuple[type[Exception], ...],
        attempts: int,
        progress: Callable[[int], None],
    ) -> None:
        self._function, self._tiles, self._retry, self._attempts = function, tiles, retry, attempts
        self._progress = progress
        self._tries: Counter[int] = Counter()
        self.results: dict[int, Any] = {}

    def run(self, pool: Any) -> Exception | None:
        """Run all tiles that have no result yet; return the exception that broke the pool, or None if every
        tile now has a result."""
        ready: SimpleQueue[Future[Any]] = SimpleQueue()
        waiting: dict[Future[Any], int] = {}
        failures: dict[int, Exception] = {}
        broken: Exception | None = None
        todo = deque(tile for tile in range(len(self._tiles)) if tile not in self.results)
        try:
            while todo or waiting:
                while todo and not failures and broken is None:
                    tile = todo.popleft()
                    try:
                        future = pool.submit(self._function, self._tiles[tile])
                    except BrokenExecutor as error:
                        broken = error
                    else:
                        if not isinstance(future, Future):
                            raise TypeError(
                                f"{pool!r}.submit returns {future!r}, no concurrent.futures.Future"
                            )
                        waiting[future] = tile
                        future.add_done_callback(ready.put)
                if not waiting:
                    break
                tile = waiting.pop(future := ready.get())
                try:
                    self.results[tile] = future.result()
                except (BrokenExecutor, CancelledError) as error:
                    broken = broken or error  # tiles cancelled by a failure are not retried
                except Exception as error:
                    self._tries[tile] += 1
                    if isinstance(error, self._retry) and self._tries[tile] < self._attempts:
                        todo.append(tile)
                        continue
                    failures[tile] = error
                    for other in [*waiting]:
                        other.cancel()
                else:
                    self._progress(len(self.results))
        finally:
            for other in [*waiting]:
                other.cancel()
        if failures:
            tile = min(failures)
            text = "".join(traceback.format_exception(failures[tile]))
            what = f"tile {tile}, {self._tiles[tile]!r:.200}, failed in the executor:\n{text}"
            raise TileError(what, self._tiles[tile]) from failures[tile]
        return broken

    def lost(self, error: Exception, pools: int) -> TileError:
        """Return the error to raise if tiles have no result because the pool broke."""
        missing = [tile for tile in range(len(self._tiles)) if tile not in self.results]
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        text = (
            f"the executor broke ({type(error).__name__}: {error}): {len(missing)} of "
            f"{len(self._tiles)} tiles have no result: {shown}"
        )
        hint = (
            f"; so it went with {pools} pools"
            if pools > 1
            else (
                "; with executor=ProcessPoolExecutor, or a function that makes a pool, pmap makes a new one"
            )
        )
        return TileError(text + hint, self._tiles[missing[0]])
