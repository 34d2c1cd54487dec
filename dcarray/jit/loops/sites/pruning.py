"""Removal of refused sites from the code of functions, so that they cost nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from dcarray.core import native
from dcarray.core.faults import passed_over
from dcarray.core.tools import unseen
from dcarray.core.uncollected import uncollected

from ..syntax.originals import originals
from .codes import every
from .functions import function_code, give, holders
from .sampler import SAMPLER
from .site import Site

__all__ = ["prune", "prune_soon"]


def prune(code: CodeType, sites: Sequence[Site]) -> None:
    """Give the functions that run the code object ``code`` one without refused ``sites``.

    Calls that are running keep the old code.  If no such function is found, nothing changes.
    """
    functions = [one for one in _functions(code, sites) if one.__code__ is code]
    known = {site.source: site for site in every.get(id(code), sites)}
    if not functions or id(code) not in originals:
        return
    plain = originals[id(code)][1]
    refused = frozenset([source for source, site in known.items() if site.refused])
    pruned = plain
    if len(refused) < len(known):
        sited = function_code(functions[0], plain, refused)
        if sited is None or not all(place.source in known for place in sited.places):
            return
        pruned = sited.filled(plain, [known[place.source] for place in sited.places])
    kept = [site for site in sites if not site.refused]
    SAMPLER.add(pruned, kept)
    for function in functions:
        give(function, pruned)


def prune_soon(code: CodeType, sites: Sequence[Site]) -> None:
    """Have the main thread call `prune` soon.

    Syntax trees are made there: CPython 3.11 counts the depth of all that are being made in one place, so
    that two made at the same time may fail ("AST constructor recursion depth mismatch").  Nor are they made
    while code runs within `ast.parse`, as functions that the garbage collector calls do.
    """

    def work() -> None:
        try:
            if not unseen():  # a tool may compare the code of frames and functions
                return
            with uncollected():
                if not chains({id(ast.parse.__code__): None}, 0, sys.getrecursionlimit()):
                    prune(code, sites)
        except Exception as error:
            passed_over(error, (code.co_filename, code.co_firstlineno))

    if native.BUILT:
        from dcarray._native.extension import chains, have_done

        have_done(work)


def _functions(code: CodeType, sites: Sequence[Site]) -> list[FunctionType]:
    """Return the functions that run a code object, if they were noted, or have global names."""
    functions: list[Any] = [f for one in holders.get(id(code), ()) if (f := one())]
    names: Any = sites[0].names if sites else {}
    for part in code.co_qualname.split("."):
        value = names.get(part)
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        functions += [value] * (type(value) is FunctionType)
        names = vars(value) if isinstance(value, type) else {}
    return list(dict.fromkeys(functions))
