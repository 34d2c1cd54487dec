"""Heads and bodies of loops in C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a block; pragmas stand at the margin."""
    for line in lines:
        yield line if line.startswith("#") else f"  {line}"


def count(elements: int) -> str:
    """The head of a loop over so many elements."""
    return f"int64_t i = 0; i < {elements}; i++"


def lanes(width: int) -> str:
    """The head of a loop over the lanes of a vector."""
    return f"int j = 0; j < {width}; j++"
