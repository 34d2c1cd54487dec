"""The source of a loop with a site, and its names."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LoopSource"]


@dataclass(frozen=True, slots=True)
class LoopSource:
    """A loop's source and names.

    Attributes
    ----------
    source, file, line
        As in `LoopDescription`.
    needed, others : tuple of str
        The local names that it reads before it binds them, and the global names that it reads.
    live : tuple of str
        The names that it binds and that may be read afterwards.
    """

    source: str
    file: str
    line: int
    needed: tuple[str, ...]
    others: tuple[str, ...]
    live: tuple[str, ...]
