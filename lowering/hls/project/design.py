"""The design: a network together with the board, the data and the names of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

from dcarray.ir.nodes import Array
from dcarray.ir.numpy_views import NDArray

from ..kernels.vitis import HLS, declared
from ..network.arguments import arguments, is_value
from ..network.nodes import Buffer, Network
from .boards import Board

TEMPLATES = Path(__file__).parent / "templates"
TOLERANCE = {"float32": "1e-4", "float64": "1e-7"}
"""Of the largest value: sums are added up in another order than NumPy's."""


@dataclass(frozen=True)
class Argument:
    """A buffer that is an argument of the kernels.

    Attributes
    ----------
    buffer : Buffer
    array : Array
    written : bool
        Whether kernels write it.
    file : str
        The file, in the project's folder, with the input elements, or for a result with the expected ones;
        empty for a buffer that only carries values between stages.
    bank : int
    """

    buffer: Buffer
    array: Array
    written: bool
    file: str
    bank: int

    @property
    def name(self) -> str:
        """The name of the buffer's pointer."""
        return self.buffer.pointer

    @property
    def type(self) -> str:
        """The C type of the buffer's elements."""
        return HLS.type(self.array.dtype)

    @property
    def count(self) -> int:
        """The number of the buffer's elements."""
        return prod(self.array.shape)

    @property
    def declared(self) -> str:
        """The declaration of the buffer as a parameter."""
        return declared(self.array, self.buffer, self.written, self.is_value)

    @property
    def is_value(self) -> bool:
        """Whether kernels get this argument by value instead of by pointer."""
        return is_value(self.array, self.written)

    @property
    def tolerance(self) -> str:
        """The largest difference, as text, of a result from the expected value that passes the test."""
        return TOLERANCE.get(self.array.dtype.name, "0")


@dataclass(frozen=True)
class Design:
    """A network for a board, with its input data and expected results.

    Attributes
    ----------
    name : str
        The name of the kernel, or the prefix of the kernels' names.
    source : str
        The place of the function in the user's source, for comments.
    network : Network
    board : Board
    clock : int
        The target frequency in MHz.
    banks : mapping of Buffer to int
    memory, expected : mapping of str to numpy.ndarray
        The values of the input arrays, and of the results.
    """

    name: str
    source: str
    network: Network
    board: Board
    clock: int
    banks: Mapping[Buffer, int]
    memory: Mapping[str, NDArray]
    expected: Mapping[str, NDArray]

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The buffers in the order of a kernel's parameters."""
        arrays = {array.name: array for array in self.network.region.arrays}
        parameters = []
        for buffer, written in arguments(self.network):
            array, file = arrays[buffer.array], ""
            if written and self.network.results.get(array.name) == buffer:
                file = f"data/expected/{array.name}.npy"
            elif not written and array.role in ("in", "inout"):
                file = f"data/{array.name}.npy"
            parameters.append(Argument(buffer, array, written, file, self.banks[buffer]))
        return tuple(parameters)

    @property
    def given(self) -> tuple[Argument, ...]:
        """The arguments whose elements are read from files."""
        return tuple(a for a in self.arguments if a.file and not a.written)

    @property
    def results(self) -> tuple[Argument, ...]:
        """The arguments that are compared with expected values."""
        return tuple(a for a in self.arguments if a.file and a.written)

    def filled(self, text: str) -> str:
        """Return a text with ``@name@``, ``@source@``, ``@board@``, ... replaced by their values."""
        words = {
            "name": self.name, "source": self.source, "board": self.board.title,
            "platform": self.board.platform, "part": self.board.part, "clock": str(self.clock),
            "period": f"{1000 / self.clock:.3f}",
        }  # fmt: skip
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        return text

    def template(self, name: str) -> str:
        """Return the text of a template file with its words replaced."""
        return self.filled((TEMPLATES / name).read_text())
