"""Loading of object code into this process, by `elf_linker` where possible, else by LLVM."""

from __future__ import annotations

from collections.abc import Sequence

from .elf_linker import LOCK, MATHEMATICS, Unlinkable, keep, link

__all__ = ["load"]


def load(code: bytes, names: Sequence[str]) -> tuple[int, ...]:
    """Link object code into this process for as long as it runs; return the addresses of the functions
    ``names``. Raises RuntimeError if the code cannot be linked."""
    with LOCK:
        try:
            linked, memory = link(code, names, MATHEMATICS)
        except Unlinkable:
            from . import engine

            return engine.link(code, names)
        keep(memory)
        return linked
