"""A network with all that a project is written from."""

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
    """A buffer that kernels are given.

    Attributes
    ----------
    buffer : Buffer
    array : Array
    written : bool
        Whether kernels write it.
    file : str
        The file of its elements before, or of those that are expected, in the project's folder; empty for
        what only passes from one stage to the next.
    bank : int
    """

    buffer: Buffer
    array: Array
    written: bool
    file: str
    bank: int

    @property
    def name(self) -> str:
        """The name of its pointer."""
        return self.buffer.pointer

    @property
    def type(self) -> str:
        """The C type of its elements."""
        return HLS.type(self.array.dtype)

    @property
    def count(self) -> int:
        """The number of its elements."""
        return prod(self.array.shape)

    @property
    def declared(self) -> str:
        """Its declaration as a parameter."""
        return declared(self.array, self.buffer, self.written, self.is_value)

    @property
    def is_value(self) -> bool:
        """Whether kernels get this argument by value instead of by pointer."""
        return is_value(self.array, self.written)

    @property
    def tolerance(self) -> str:
        """How far results may be from what is expected."""
        return TOLERANCE.get(self.array.dtype.name, "0")


@dataclass(frozen=True)
class Design:
    """A network, a board, and data.

    Attributes
    ----------
    name : str
        What kernels are called, or begin with.
    source : str
        Where the function is written; for comments.
    network : Network
    board : Board
    clock : int
        In MHz.
    banks : mapping of Buffer to int
    memory, expected : mapping of str to numpy.ndarray
        Values of the arrays that are given, and of results.
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
        found = []
        for buffer, written in arguments(self.network):
            array, file = arrays[buffer.array], ""
            if written and self.network.results.get(array.name) == buffer:
                file = f"data/expected/{array.name}.npy"
            elif not written and array.role in ("in", "inout"):
                file = f"data/{array.name}.npy"
            found.append(Argument(buffer, array, written, file, self.banks[buffer]))
        return tuple(found)

    @property
    def given(self) -> tuple[Argument, ...]:
        """The arguments whose elements are read from files."""
        return tuple(a for a in self.arguments if a.file and not a.written)

    @property
    def results(self) -> tuple[Argument, ...]:
        """The arguments that are compared with what is expected."""
        return tuple(a for a in self.arguments if a.file and a.written)

    def filled(self, text: str) -> str:
        """A text with ``@name@``, ``@source@``, ``@board@``, ... replaced by what they are."""
        words = {
            "name": self.name,
            "source": self.source,
            "board": self.board.title,
            "platform": self.board.platform,
            "part": self.board.part,
            "clock": str(self.clock),
            "period": f"{1000 / self.clock:.3f}",
        }
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        return text

    def template(self, name: str) -> str:
        """The text of a template, filled."""
        return self.filled((TEMPLATES / name).read_text())
