"""The distributed backend, as the packages below `dcarray.distributed` call it.

Where several ranks run a program together, arrays may lie in blocks.  Whoever could meet such arrays asks
here first; the module that answers is imported when there are ranks, and never in a program of one process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from .processes import communicator

if TYPE_CHECKING:
    import numpy as np

    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.transport.protocol import Communicator

    from .config import Options

__all__ = ["NO_FORM", "Backend", "backend", "is_distributed", "try_call"]

NO_FORM = object()
"""The result of a distributed call that has no distributed form."""


class Backend(Protocol):
    """What `dcarray.distributed.backend` has."""

    def run(self, executor: Any, rec: Any, options: Options, comm: Communicator) -> Callable[[], None]:
        """Run a recording on all ranks."""

    def divided(self, rec: Any, large: int) -> Any:
        """The part of a recording that has to run after the rest, or None."""

    def united(self, comm: Communicator, flags: int) -> int:
        """The bits that some rank has."""

    def default_layout(self, shape: tuple[int, ...], options: Options, comm: Communicator) -> Layout:
        """The layout of a new array."""

    def is_distributed(self, x: Any) -> bool:
        """Do the elements of an array lie in blocks?"""

    def try_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A NumPy function on arrays in blocks, or `NO_FORM`."""

    def try_whole(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same for arrays that are whole on every rank as yet."""

    def by_definition(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A NumPy function by NumPy's own Python source, or `NO_FORM`."""

    def indexed(self, original: Any, key: Any) -> Any:
        """``np.r_[key]`` and the like, or `NO_FORM`."""

    def load(self, *args: Any, **kwargs: Any) -> Any:
        """`numpy.load` into blocks, or `NO_FORM`."""

    def tofile(self, x: Any, fid: Any, *args: Any, **kwargs: Any) -> bool:
        """``x.tofile`` from blocks; False where that is not the way."""

    def drawn(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Random numbers of NumPy's stream in blocks, or `NO_FORM`."""

    def entropy(self, comm: Communicator) -> int:
        """A random seed, the same on all ranks."""

    def spaced(self, name: str, args: tuple[Any, ...]) -> Any:
        """Evenly spaced numbers in blocks, or None."""

    def layout_of(self, x: Any) -> Layout:
        """The layout of an array."""

    def local_of(self, x: Any) -> np.ndarray[Any, Any]:
        """This rank's elements."""

    def gather(self, x: Any, root: int | None) -> np.ndarray[Any, Any] | None:
        """The whole array as a plain one."""

    def seen(self, x: Any) -> np.ndarray[Any, Any]:
        """The elements of an array, to be looked at only."""


@cache
def backend() -> Backend:
    """The distributed backend."""
    return cast("Backend", import_module("dcarray.distributed.backend"))


def try_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function on arrays in blocks; `NO_FORM` if none is, or if this call has no distributed form."""
    return NO_FORM if communicator() is None else backend().try_call(function, args, kwargs)


def is_distributed(x: Any) -> bool:
    """Do the elements of an array lie in blocks?  What is pending on it is run."""
    return communicator() is not None and backend().is_distributed(x)
