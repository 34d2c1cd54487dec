"""The cells of a code object: variables that inner code uses, too."""

from __future__ import annotations

from types import CodeType

__all__ = ["free_names"]

_AT_ONCE = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})  # before Python 3.12
_LATER = "<genexpr>"


def free_names(code: CodeType, generators: bool) -> frozenset[str]:
    """Return the names that inner functions (with ``generators``: generator expressions) take from the code
    around them; comprehensions count as that code."""
    names: set[str] = set()
    for inner in code.co_consts:
        if type(inner) is CodeType:
            if inner.co_name in _AT_ONCE or (inner.co_name == _LATER and not generators):
                names |= free_names(inner, generators)
            elif generators == (inner.co_name == _LATER):
                names.update(inner.co_freevars)
    return frozenset(names)
