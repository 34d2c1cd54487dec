"""The interface through which lower packages call `dcarray.distributed`.

Where several ranks run a program together, arrays may lie in blocks.  Code that may get such arrays calls
this interface first; the implementation is imported when there are ranks, and never in a program of one
process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from . import open_door
from .processes import communicator

if TYPE_CHECKING:
    import numpy as np

    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.transport.protocol import Communicator

    from .config import Options

__all__ = ["NOT_DISTRIBUTED", "Backend", "backend", "is_distributed", "try_call"]

NOT_DISTRIBUTED = object()
"""The result where a call has no distributed implementation."""


class Backend(Protocol):
    """The functions of `dcarray.distributed.backend`."""

    def run(self, executor: Any, rec: Any, options: Options, comm: Communicator) -> Callable[[], None]:
        """Run a recording on all ranks."""

    def RegionOnRanks(self, region: Any, values: Any, name: str, where: tuple[str, int]) -> Any:
        """Return a program's region with the values of its symbols, ready to run on all ranks."""

    def split_at_reshape(self, rec: Any, large: int) -> Any:
        """Split off the statements of a recording that have to run in a second one; None if there are
        none."""

    def combine_flags(self, comm: Communicator, flags: int) -> int:
        """Return the bitwise or of the floating-point flags of all ranks."""

    def default_layout(self, shape: tuple[int, ...], options: Options, comm: Communicator) -> Layout:
        """Return the layout of a new array."""

    def is_distributed(self, x: Any) -> bool:
        """Whether an array is distributed."""

    def try_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a NumPy function on arrays in blocks; `NOT_DISTRIBUTED` if it has no distributed form."""

    def try_call_replicated(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a NumPy function on arrays that every rank has as a whole; returns as `try_call`."""

    def call_numpy_source(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a NumPy function's own Python source on distributed arrays; returns as `try_call`."""

    def index_trick(self, original: Any, key: Any) -> Any:
        """Return ``np.r_[key]`` or ``np.c_[key]`` of distributed arrays; `NOT_DISTRIBUTED` if there are
        none."""

    def load(self, *args: Any, **kwargs: Any) -> Any:
        """Load a file as `numpy.load` into a distributed array; `NOT_DISTRIBUTED` if NumPy has to load it."""

    def tofile(self, x: Any, fid: Any, *args: Any, **kwargs: Any) -> bool:
        """Write a distributed array as ``x.tofile`` does; return False if NumPy has to."""

    def distributed_random(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Draw a large random array of NumPy's stream in blocks; `NOT_DISTRIBUTED` if NumPy has to."""

    def block(self, *args: Any, **kwargs: Any) -> Any:
        """Return a window of an array of random numbers; see `dcarray.random.block`."""

    def shared_seed(self, comm: Communicator) -> int:
        """Return a random seed, the same on all ranks."""

    def distributed_range(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return a large distributed `numpy.arange` or `numpy.linspace`; None if NumPy has to make it."""

    def layout_of(self, x: Any) -> Layout:
        """Return the layout of an array."""

    def local_of(self, x: Any) -> np.ndarray[Any, Any]:
        """Return this rank's elements."""

    def gather(self, x: Any, root: int | None) -> np.ndarray[Any, Any] | None:
        """Return the whole array as a plain one."""

    def elements_of(self, x: Any) -> np.ndarray[Any, Any]:
        """Return the elements of an array as a plain one, perhaps a copy, that must not be written."""


@cache
def backend() -> Backend:
    """Return the distributed backend."""
    return cast("Backend", open_door("ranks"))


def try_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a NumPy function on arrays in blocks; `NOT_DISTRIBUTED` if none is, or the function has no
    distributed form."""
    return NOT_DISTRIBUTED if communicator() is None else backend().try_call(function, args, kwargs)


def is_distributed(x: Any) -> bool:
    """Whether an array is distributed, once what is pending on it has run."""
    return communicator() is not None and backend().is_distributed(x)
