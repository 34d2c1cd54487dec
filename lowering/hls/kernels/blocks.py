"""C texts of the heads and bodies of loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a block indented, pragmas at the margin."""
    for line in lines:
        yield line if line.startswith("#") else f"  {line}"


def repeated(times: int, lines: Sequence[str]) -> Iterator[str]:
    """Yield a loop that runs the statements ``times`` times; without a loop if that is once."""
    if times == 1:
        yield from lines
        return
    yield f"for (int64_t turn = 0; turn < {times}; turn++) {{"
    yield from indented(lines)
    yield "}"


def count(elements: int) -> str:
    """Return the head of a C loop over ``elements`` elements."""
    return f"int64_t i = 0; i < {elements}; i++"


def lanes(width: int) -> str:
    """Return the head of a C loop over the ``width`` lanes of a vector."""
    return f"int j = 0; j < {width}; j++"
