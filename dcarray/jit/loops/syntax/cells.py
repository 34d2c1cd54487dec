"""The names of a code object that the code inside of it has, too: its cells, and who may read them when."""

from __future__ import annotations

from types import CodeType

__all__ = ["free_names"]

_AT_ONCE = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})  # before Python 3.12
_LATER = "<genexpr>"


def free_names(code: CodeType, generators: bool) -> frozenset[str]:
    """Return the names that inner functions, or generator expressions, have from the code around them;
    comprehensions run where they stand."""
    found: set[str] = set()
    for inner in code.co_consts:
        if type(inner) is CodeType:
            if inner.co_name in _AT_ONCE or (inner.co_name == _LATER and not generators):
                found |= free_names(inner, generators)
            elif generators == (inner.co_name == _LATER):
                found.update(inner.co_freevars)
    return frozenset(found)
