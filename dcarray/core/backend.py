"""The interface through which lower packages call `dcarray.distributed`.

Where several ranks run a program together, arrays may lie in blocks.  Whoever could meet such arrays asks
here first; the module that answers is imported when there are ranks, and never in a program of one process.
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
        """Return the region of a program, for runs on all ranks."""

    def split_at_reshape(self, rec: Any, large: int) -> Any:
        """Split off the statements of a recording that have to run in a second one, or None."""

    def combine_flags(self, comm: Communicator, flags: int) -> int:
        """Return the bitwise or of all ranks' flags."""

    def default_layout(self, shape: tuple[int, ...], options: Options, comm: Communicator) -> Layout:
        """Return the layout of a new array."""

    def is_distributed(self, x: Any) -> bool:
        """Whether an array is distributed."""

    def try_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a NumPy function on arrays in blocks; `NOT_DISTRIBUTED` if it has no distributed form."""

    def try_call_replicated(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a NumPy function on arrays that every rank has whole; likewise."""

    def call_numpy_source(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a NumPy function by NumPy's own Python source; likewise."""

    def index_trick(self, original: Any, key: Any) -> Any:
        """``np.r_[key]`` and the like, or `NOT_DISTRIBUTED`."""

    def load(self, *args: Any, **kwargs: Any) -> Any:
        """`numpy.load` into blocks, or `NOT_DISTRIBUTED`."""

    def tofile(self, x: Any, fid: Any, *args: Any, **kwargs: Any) -> bool:
        """``x.tofile`` of a distributed array; False if NumPy has to do it."""

    def distributed_random(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Random numbers of NumPy's stream in blocks, or `NOT_DISTRIBUTED`."""

    def block(self, *args: Any, **kwargs: Any) -> Any:
        """Return a window of an array of random numbers; see `dcarray.random.block`."""

    def shared_seed(self, comm: Communicator) -> int:
        """Return a random seed, the same on all ranks."""

    def distributed_range(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return a distributed `numpy.arange` or `numpy.linspace`, or None."""

    def layout_of(self, x: Any) -> Layout:
        """Return the layout of an array."""

    def local_of(self, x: Any) -> np.ndarray[Any, Any]:
        """Return this rank's elements."""

    def gather(self, x: Any, root: int | None) -> np.ndarray[Any, Any] | None:
        """Return the whole array as a plain one."""

    def elements_of(self, x: Any) -> np.ndarray[Any, Any]:
        """Return the elements of an array, perhaps of a copy: not to be written."""


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
