"""The placement of buffers in the banks of a board's memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from dcarray.ir.nodes import Compute, Nest
from dcarray.ir.text import show_stmt
from dcarray.lowering.errors import Unsupported

from ..network.arguments import arguments
from ..network.nodes import Buffer, Network
from .boards import Board


def nbytes(network: Network, buffer: Buffer) -> int:
    """Return the size of a buffer in bytes; that of one element if it is empty."""
    array = next(array for array in network.region.arrays if array.name == buffer.array)
    return max(prod(array.shape), 1) * array.dtype.itemsize


def placed(network: Network, board: Board) -> Mapping[Buffer, int]:
    """Return the bank of each buffer: buffers are placed largest first, each in the bank with most free
    space.

    Raises
    ------
    Unsupported
        If the buffers do not fit; the text names the largest one and its statement.
    """
    free = [board.bank_bytes] * board.banks
    sizes = {buffer: nbytes(network, buffer) for buffer, _ in arguments(network)}
    banks: dict[Buffer, int] = {}
    for buffer in sorted(sizes, key=lambda one: -sizes[one]):
        bank = max(range(board.banks), key=lambda k: free[k])
        free[bank] -= sizes[buffer]
        if free[bank] < 0:
            raise Unsupported(_too_large(network, board, sizes))
        banks[buffer] = bank
    return {buffer: banks[buffer] for buffer in sizes}


def _too_large(network: Network, board: Board, sizes: Mapping[Buffer, int]) -> str:
    largest = max(sizes, key=lambda buffer: sizes[buffer])
    parts = [
        part for stmt in network.region.body for part in (stmt.body if isinstance(stmt, Nest) else (stmt,))
    ]
    who = next((s for s in parts if isinstance(s, Compute) and s.target.array == largest.array), None)
    text = "" if who is None else f" of '{show_stmt(who, network.region).strip()}'"
    total, banks = sum(sizes.values()), f"{board.banks} banks of {_size(board.bank_bytes)}"
    return (
        f"the buffers take {_size(total)}, and {board.title} has {banks}: the largest is "
        f"{largest.array}{text} with {_size(sizes[largest])}; take smaller arrays, or work on a part of "
        "them at a time"
    )


def _size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.4g} GiB"
