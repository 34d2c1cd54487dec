"""Routines of `dcarray.lowering.llvm` that are no kernels: compiled when first asked for, as ``jit`` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import config
from .session import EXECUTOR

__all__ = ["Compiled"]


class Compiled:
    """The code of one routine, once it is there.

    Parameters
    ----------
    routine : callable
        Gives the `Routine`; it imports what makes it.
    """

    __slots__ = ("_asked", "_launch", "_routine")

    def __init__(self, routine: Callable[[], Any]) -> None:
        self._routine = routine
        self._launch: Any = None
        self._asked = False

    def launch(self, seconds: float) -> Any:
        """What calls it, or None as long as NumPy has to serve, which takes about so long."""
        options = config.current()
        if options.jit == "off":
            return None
        if not self._asked:
            self._asked = True
            if options.jit == "eager":
                self._make(options.cache_dir)
            else:
                EXECUTOR.background.later(lambda: self._make(options.cache_dir))
        if self._launch is None:
            EXECUTOR.background.worked(seconds)
        return self._launch

    def _make(self, folder: str | None) -> None:
        from .lowering import cache
        from .lowering.llvm.routine import NO_KERNEL
        from .lowering.target import Unsupported

        try:
            self._launch = cache.of(folder).launch(self._routine(), NO_KERNEL)
        except (Unsupported, MemoryError):  # NumPy goes on serving
            self._launch = None
