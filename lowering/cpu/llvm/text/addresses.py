"""A shorthand for addresses of elements in handwritten LLVM text."""

from __future__ import annotations

import re
from itertools import count

__all__ = ["expand_addresses"]

_ADDRESS = re.compile(r"(%[\w.]+)\[([^%\n]+?) (%[\w.]+|-?\d+)\]")


def expand_addresses(text: str) -> str:
    """Return LLVM text with each ``ptr %base[type index]`` written out: a ``getelementptr`` on the line
    before, and its result."""
    numbers = count()
    lines: list[str] = []
    for line in text.split("\n"):

        def address(match: re.Match[str]) -> str:
            base, kind, index = match.groups()
            lines.append(f"  %address.{next(numbers)} = getelementptr {kind}, ptr {base}, i64 {index}")
            return lines[-1].split()[0]

        expanded = _ADDRESS.sub(address, line)
        lines.append(expanded)
    return "\n".join(lines)
