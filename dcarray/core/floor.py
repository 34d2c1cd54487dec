"""The floor: NumPy itself, with kept memory, short calls and loops that threads share, from its first call.

It is beneath all of NumPy's functions, in all threads, for plain arrays and those of recordings.  Results
have NumPy's bits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from . import config
from .native import BUILT
from .when_imported import when_imported

__all__ = ["LETTERS", "choice", "facts", "install", "parts"]

_PARTS = {
    "on": ("memory", "calls", "threads"),
    "memory": ("memory",),
    "calls": ("calls",),
    "threads": ("threads",),
    "off": (),
}
LETTERS = "?bBhHiIlLqQefdFD"
"""The characters of the dtypes for which loops are called, and code is compiled."""

choice: Any = None
"""The ufunc ``where(condition, x, y)``, whose loops threads share; None without the C module."""

_wanted: tuple[str, ...] | None = None
_installed: tuple[str, ...] = ()


def install() -> None:
    """Put the floor under NumPy, once in a process, when NumPy is imported; without the C module there is
    none.

    Raises
    ------
    ValueError
        If the environment variable DCARRAY_FLOOR has an unknown value.
    """
    global _wanted
    if _wanted is None:
        wanted = os.environ.get("DCARRAY_FLOOR") or "on"
        if wanted not in _PARTS:
            raise ValueError(f"DCARRAY_FLOOR={wanted!r} is no part of the floor: {', '.join(_PARTS)}")
        _wanted = _PARTS[wanted]
        if BUILT:
            when_imported("numpy", _put_all)


def parts() -> tuple[str, ...]:
    """Return the parts that are under NumPy."""
    return _installed


def _put_all() -> None:
    global _installed
    _installed = tuple(_put(_wanted or ()))


def _put(wanted: tuple[str, ...]) -> Iterator[str]:
    """Put these parts under NumPy and yield those that could be."""
    import numpy as np
    from numpy._core import _multiarray_umath, umath  # type: ignore[attr-defined]

    from dcarray._native import extension

    api: Any = _multiarray_umath._ARRAY_API
    ufuncs = {
        name: ufunc
        for name, ufunc in vars(umath).items()
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None and ufunc.__name__ == name
    }
    known = extension.find_loops(api, ufuncs, tuple([np.dtype(letter) for letter in LETTERS]))
    if "memory" in wanted and extension.set_kept_memory(api, sys.maxsize):
        yield "memory"
    if "calls" in wanted and known and extension.call_ufuncs_by_loops(_multiarray_umath._UFUNC_API, ufuncs):
        zero = float(np.add.reduce(np.array([-0.0])))
        extension.reduce_by_loops(api, ufuncs, np._NoValue, zero)
        yield "calls"
    if known:
        global choice
        ufuncs["where"] = choice = extension.make_choice(_multiarray_umath._UFUNC_API)
    threads = config.look_again().threads
    if "threads" in wanted and threads > 1:
        del ufuncs["power"]  # its loops raise the error of negative powers, which no other thread can
        if extension.share_loops(tuple(ufuncs.values()), threads):
            config.ON_CHANGE.append(_limit_threads)
            when_imported(_FFT, _share_fft)
            extension.choose_by_loops(_multiarray_umath.where, choice)
            yield "threads"


_FFT = "numpy.fft._pocketfft_umath"


def _share_fft() -> None:
    """Let threads share the rows of NumPy's Fourier transforms."""
    from dcarray._native.extension import share_loops

    ufuncs = [one for one in vars(sys.modules[_FFT]).values() if type(one) is type(choice)]
    share_loops(tuple(ufuncs), config.current().threads)


def _limit_threads() -> None:
    """Let as many threads share loops as the options say now."""
    from dcarray._native.extension import share_loops

    share_loops((), config.current().threads)


def facts() -> dict[str, int]:
    """Return what the floor has done; nothing without a floor.

    These are the bytes that arrays use (``in_use``), have used at once (``most``), and that are ``kept``; how
    often kept memory was ``reused``, and fresh memory ``mapped``; how many inner loops were ``shared``.
    """
    if not _installed:
        return {}
    from dcarray._native.extension import kept_memory, shared_runs

    names = "in_use", "most", "kept", "reused", "mapped"
    return dict(zip(names, kept_memory(), strict=True), shared=shared_runs())
