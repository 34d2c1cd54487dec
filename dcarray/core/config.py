"""Options: read from environment variables when first needed, and set for ``with`` blocks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

from dcarray.core import cores
from dcarray.core.device_names import resolve
from dcarray.core.unpatched import monotonic
from dcarray.ir.records import record, replaced

__all__ = ["Options", "current", "look_again", "options", "process_threads", "refresh", "set_threads"]

DEBUG_LEVELS: Final = 6
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off", "")


@record(frozen=True, slots=True)
class Options:
    """The values of all options; `options` says what they mean."""

    device: str = "cpu"
    jit: str = "background"
    eager_below: int = 16384
    threads: int = 1
    distribute_above: int = 1 << 20
    strict: bool = False
    fastmath: bool = False
    cache_dir: str | None = None
    debug: int = 0
    grid: tuple[int, ...] | None = None
    target: str = "cpu"
    graphs: bool = True
    graph_memory: int | None = None


def _device(value: Any) -> str:
    try:
        return resolve(value)
    except ValueError as error:
        raise ValueError(f"a device ({error})") from None


def _target(value: Any) -> str:
    from dcarray.lowering import targets
    from dcarray.lowering.gpu.devices import KINDS

    if value in KINDS:
        raise ValueError(f"a target of the processor; arrays with device={value!r} have that of their device")
    if isinstance(value, str):
        try:
            if value not in targets.names():
                targets.get(value)
        except ValueError as error:
            raise ValueError(f"a target ({error})") from None
        return value
    raise ValueError("the name of a target, or an import path 'package.module:NAME'")


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value in names:
            return str(value)
        raise ValueError(", ".join(names[:-1]) + " or " + names[-1])

    return read


def _integer(minimum: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        try:
            number = int(value) if isinstance(value, str) else value.__index__()
        except (ValueError, AttributeError, TypeError):
            number = None
        if number is None or isinstance(value, bool) or number < minimum:
            raise ValueError(f"an integer >= {minimum}")
        return int(number)

    return read


def _most_elements(value: Any) -> int:
    if value is None or value in ("", "none"):
        return sys.maxsize
    try:
        return _integer(0)(value)
    except ValueError:
        raise ValueError("an integer >= 0, or none for no limit") from None


def _bytes(value: Any) -> int | None:
    if value is None or value in ("", "none"):
        return None
    try:
        return _integer(0)(value)
    except ValueError:
        raise ValueError("a number of bytes, or none for a part of the device's memory") from None


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = value.lower() if isinstance(value, str) else str(value) if isinstance(value, int) else "?"
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("a boolean: 1, true, yes, on, or 0, false, no, off")


def _debug_level(value: Any) -> int:
    with suppress(ValueError):
        return int(_flag(value))
    with suppress(ValueError):
        if (level := _integer(0)(value)) <= DEBUG_LEVELS:
            return level
    raise ValueError(f"an integer from 0 to {DEBUG_LEVELS}")


def _folder(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, (str, os.PathLike)):
        return os.path.abspath(os.path.expanduser(os.fspath(value)))
    raise ValueError("a folder, or an empty text for none")


def _grid(value: Any) -> tuple[int, ...] | None:
    """Return the option ``grid`` from its text or tuple; None if it is not given."""
    if value is None or value == "":
        return None
    try:
        ranks = value.split("x") if isinstance(value, str) else value
        grid = tuple(int(n) for n in ranks)
    except (TypeError, ValueError):
        grid = ()
    if not grid or min(grid) < 1:
        raise ValueError("ranks along each axis: (2, 3), or 2x3 in the environment")
    return grid


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "device": _device, "jit": _one_of("background", "eager", "off"), "eager_below": _integer(0),
    "threads": _integer(1), "distribute_above": _most_elements, "strict": _flag, "fastmath": _flag,
    "cache_dir": _folder, "debug": _debug_level, "grid": _grid, "target": _target, "graphs": _flag,
    "graph_memory": _bytes,
}  # fmt: skip


def _read(name: str, value: Any, shown: str) -> Any:
    try:
        return _READERS[name](value)
    except ValueError as allowed:
        raise ValueError(f"{shown}={value!r}: must be {allowed}") from None


def _default_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "dcarray")


def _from_environment() -> Options:
    global _fixed
    values: dict[str, Any] = {"cache_dir": _default_cache()}
    for name in _READERS:
        variable = "DCARRAY_" + name.upper()
        text = os.environ.get(variable)
        if text is not None:
            values[name] = _read(name, text, variable)
    _fixed = values.get("threads") or _openmp_threads()
    values["threads"] = _fixed or cores.available()
    return _consistent(Options(**values))


def _openmp_threads() -> int | None:
    """Return the number of threads that OMP_NUM_THREADS sets for the outermost level; None if it is not set
    or invalid."""
    try:
        return max(0, int(os.environ.get("OMP_NUM_THREADS", "").partition(",")[0])) or None
    except ValueError:
        return None


def _consistent(given: Options) -> Options:
    """Return options with ``eager_below`` at most ``distribute_above``: only recorded calls are
    distributed."""
    if given.distribute_above < given.eager_below:
        return replaced(given, eager_below=given.distribute_above)
    return given


_process: Options | None = None
ON_CHANGE: list[Callable[[], None]] = []
"""Called when the options of a thread have changed."""
_scoped: ContextVar[Options | None] = ContextVar("dcarray_options", default=None)


def _outside() -> Options:
    """Return the options outside of all blocks."""
    global _process
    if _process is None:
        _process = _from_environment()
    return _process


def current() -> Options:
    """Return the options in force in this thread and context; cheap enough for every call."""
    chosen = _scoped.get() or _process or _outside()
    return chosen if _limit is None else _limited(chosen)


SCOPED = _scoped
"""The context variable of the options of blocks."""


def scoped() -> Options | None:
    """Return the options of the innermost `options` block; None outside of all blocks."""
    return _scoped.get()


def in_force() -> tuple[tuple[dict[str, Any], str, Any], ...]:
    """Return the bindings (dictionary, name, object) on which the options depend, besides `SCOPED`."""
    return (globals(), "_process", _process), (globals(), "_limit", _limit)


def refresh() -> None:
    """Forget the values taken from the environment, so that it is read again when next needed."""
    global _process
    _process = None


# ---- the number of threads, which may change ----------------------------------------------------------
_fixed: int | None = None  # what the environment says
_looked, _pause = 0.0, 0.0  # when the processors were looked at, and the seconds until the next look
_FIRST, _LAST = 0.02, 1.0  # such seconds; they double from the one to the other
_limit: int | None = None  # what other code allows
_whole = 0  # the number of threads of the process when it did so
_capped: tuple[Options, Options] | None = None  # options, and the same within that limit


def look_again() -> Options:
    """Return the current options with an up-to-date default number of threads.  Now and then this looks which
    processors the process may use, which takes microseconds; short calls use `current` instead."""
    global _looked, _pause, _process
    before = _process
    if before is None or _fixed is not None or (now := monotonic()) - _looked < _pause:
        return current()
    threads = cores.available()
    _looked, _pause = now, max(min(max(2 * _pause, _FIRST), _LAST), 100 * (monotonic() - now))
    if threads != before.threads:
        _process = replaced(before, threads=threads)
        scoped = _scoped.get()
        if scoped is not None and scoped.threads == before.threads:  # none was chosen for this block
            _scoped.set(replaced(scoped, threads=threads))
        _tell()
    return current()


def set_threads(most: int | None) -> None:
    """Limit the threads of this process, also inside `options` blocks that set more.  None, or the number
    before the limit, removes the limit."""
    global _limit, _whole
    now = process_threads(limited=False)
    if _limit is None:
        _whole = now
    _limit = None if most is None or most >= min(now, _whole) else max(1, most)
    _tell()


def process_threads(limited: bool = True) -> int:
    """Return the number of threads outside of all blocks of `options`, with or without the limit of other
    code."""
    whole = _outside().threads
    return min(whole, _limit) if limited and _limit is not None else whole


def _limited(chosen: Options) -> Options:
    global _capped
    known, limit = _capped, _limit
    if limit is None or chosen.threads <= limit:
        return chosen
    if known is None or known[0] is not chosen or known[1].threads != limit:
        known = _capped = chosen, replaced(chosen, threads=limit)
    return known[1]


def _after_fork() -> None:
    """Have a forked child find out its own processors: it may have to share them."""
    global _looked, _pause
    _looked = _pause = 0.0
    if _scoped.get() is not None:
        look_again()
    elif _fixed is None:
        refresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def options(**values: Any) -> Iterator[Options]:
    """Set options for the calls inside a ``with`` block, in this thread (or task) only; blocks nest.

    Parameters
    ----------
    device : str
        Where new arrays are that do not say ``device=``: one of `dcarray.devices`, like ``"opencl:0"``, or
        ``"auto"``, where each recording runs on the processor or on a device (default ``"cpu"``).
    jit : {"background", "eager", "off"}
        When recordings are compiled: in another process, while NumPy runs them (the default); before their
        first run; never.
    eager_below : int
        Elements below which NumPy runs a call at once, without recording it (default 16384); 0 records every
        call.
    threads : int
        Threads that a kernel uses, or parts of a call of NumPy's (default: what OMP_NUM_THREADS says, or else
        the processors that this process may use, see `docs/options.md`).
    distribute_above : int or None
        Elements above which an array is distributed over the ranks (default 2**20); 0 distributes every
        array, None none (kept as ``sys.maxsize``).
    strict : bool
        Whether a call that has no compiled form raises `StrictError`, instead of being run by NumPy, and a
        call of a program with other types than its own `TypeError`.
    fastmath : bool
        Whether functions like ``exp`` may come from the system's vector library where that is faster: within
        a few units in the last place, instead of with NumPy's bits.
    cache_dir : str, path or None
        Folder of compiled code and plans (default ``~/.cache/dcarray``); None keeps them in memory only.
    debug : int
        What is printed on the standard error stream: 1 devices and plans, 2 timing as well, 3 passes, 4
        regions, 5 kernels, 6 machine code (default 0: nothing).  From 1 on plans are made in this process,
        regions are verified after every pass, and errors in compiling are raised.
    grid : sequence of int or None
        Ranks along the first axes of distributed arrays; None chooses a grid for each shape.
    target : str
        What regions are compiled for: ``"cpu"`` (LLVM), ``"c"`` (the system's C compiler), or the import path
        ``"package.module:NAME"`` of a target of one's own (``docs/adding-a-target.md``).
    graphs : bool
        Whether a CUDA device is given launches as graphs (the default), or one by one.
    graph_memory : int or None
        Bytes that the temporaries of a graph may take where an order of its nodes allows that; None is a
        quarter of the device's memory.

    Yields
    ------
    Options
        The values in force inside the block, as attributes.

    Raises
    ------
    ValueError
        If there is no such option, or the value is not allowed; the message says which are.

    Notes
    -----
    Outside of such blocks the values come from environment variables, ``DCARRAY_`` and the name in capitals,
    which are read when they are first needed.

    Examples
    --------
    >>> import dcarray as dc
    >>> with dc.options(jit="off", eager_below=0) as now:
    ...     now.jit
    'off'
    """
    for name in values:
        if name not in _READERS:
            allowed = ", ".join(_READERS)
            raise ValueError(f"unknown option {name!r}; the options are {allowed}")
    read = {name: _read(name, value, name) for name, value in values.items()}
    look_again()
    token = _scoped.set(_consistent(replaced(_scoped.get() or _outside(), **read)))
    try:
        _tell()
        yield current()
    finally:
        _scoped.reset(token)
        _tell()


def _tell() -> None:
    for listener in ON_CHANGE:
        listener()
