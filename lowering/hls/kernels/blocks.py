"""Heads and bodies of loops in C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a block; pragmas stand at the margin."""
    for line in lines:
        yield line if line.startswith("#") else f"  {line}"


def repeated(times: int, lines: Sequence[str]) -> Iterator[str]:
    """Statements that run so many times."""
    if times == 1:
        yield from lines
        return
    yield f"for (int64_t turn = 0; turn < {times}; turn++) {{"
    yield from indented(lines)
    yield "}"


def count(elements: int) -> str:
    """The head of a loop over so many elements."""
    return f"int64_t i = 0; i < {elements}; i++"


def lanes(width: int) -> str:
    """The head of a loop over the lanes of a vector."""
    return f"int j = 0; j < {width}; j++"
