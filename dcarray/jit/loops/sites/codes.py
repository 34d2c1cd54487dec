"""The code objects that are made of the program's, with sites or with bound names: the original of each, and
the sites in it."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping
from opcode import opmap
from types import CodeType
from typing import Any

from dcarray.core.counters import SETTLE, settle

from ..entry.bound_names import BoundName
from ..syntax.originals import originals
from .sampler import SAMPLER
from .site import Site

__all__ = ["bound", "every", "inner_codes", "note_codes"]

_CACHE, _EXTENDED, _GLOBAL, _CONST, _INVERT, _NULL, _NOP = (
    opmap[name]
    for name in ("CACHE", "EXTENDED_ARG", "LOAD_GLOBAL", "LOAD_CONST", "UNARY_INVERT", "PUSH_NULL", "NOP")
)
_NULL_FIRST = sys.version_info < (3, 13)  # where a call has a callable without an object

every: dict[int, list[Site]] = {}
"""By the identity of a code object with sites, these, and those of the codes in it."""


def note_codes(code: CodeType, plain: CodeType, sites_of: Mapping[tuple[str, int], list[Site]]) -> list[Site]:
    """Register a code object with sites, and the code objects in it: `original` finds ``plain`` for ``code``
    from now on, and the sampler watches ``code``.  Return all sites in it."""
    own = sites_of.get((code.co_name, code.co_firstlineno), ())
    sites = [*own]
    for inner, before in zip(inner_codes(code), inner_codes(plain), strict=True):
        sites += note_codes(inner, before, sites_of)
    if sites:
        originals[id(code)] = code, plain
        every[id(code)] = sites
    if own:
        SAMPLER.add(code, own)
    return sites


@atexit.register
def release() -> None:
    """Let go of the program's objects at its end: they are finalised when they are in plain Python, so that
    files are written to their ends."""
    for site in {id(site): site for sites in [*every.values()] for site in sites}.values():
        site.release()
    settle()
    SETTLE.clear()


def inner_codes(code: CodeType) -> list[CodeType]:
    """Return the code objects that are constants of a code object: those of its inner functions and
    classes."""
    return [const for const in code.co_consts if type(const) is CodeType]


# by the identities of a code object and of names: that, the number of names, and the code with these bound
_bound: dict[tuple[int, int], tuple[CodeType, int, CodeType]] = {}


def bound(code: CodeType, names: Mapping[str, BoundName]) -> CodeType:
    """Return a code object, with its inner ones, that loads these global names by `BoundName`.  It has the
    same sites, and its instructions have the same places."""
    known = _bound.get((id(code), id(names)))
    if known is not None and known[1] == len(names):
        return known[2]
    consts = [bound(const, names) if type(const) is CodeType else const for const in code.co_consts]
    units = _with_names(code, names, consts)
    copy = code
    if units != code.co_code or any(a is not b for a, b in zip(consts, code.co_consts, strict=True)):
        copy = code.replace(co_code=units, co_consts=tuple(consts))
        originals[id(copy)] = copy, originals.get(id(code), (code, code))[1]
        if id(code) in every:
            every[id(copy)] = every[id(code)]
        SAMPLER.add_copy(copy, code)
    _bound[id(code), id(names)] = code, len(names), copy
    return copy


def _with_names(code: CodeType, names: Mapping[str, BoundName], consts: list[Any]) -> bytes:
    """Return the instructions of a code object, which load constants, appended to ``consts``, in place of
    these global names.  They take no more room, since the original ones have caches."""
    units, start = bytearray(code.co_code), 0
    places: dict[str, int] = {}
    while start < len(units):
        at, argument = start, units[start + 1]
        while units[at] == _EXTENDED:
            at += 2
            argument = argument << 8 | units[at + 1]
        end = at + 2
        while end < len(units) and units[end] == _CACHE:
            end += 2
        name = code.co_names[argument >> 1] if units[at] == _GLOBAL else ""
        if name in names:
            place = places.setdefault(name, len(consts))
            consts += [names[name]] * (place == len(consts))
            null = [_NULL, 0] * (argument & 1)
            load = [_EXTENDED, place >> 8, _CONST, place & 255, _INVERT, 0]
            instructions = bytes(null + load if _NULL_FIRST else load + null)
            units[start:end] = instructions + bytes([_NOP, 0]) * ((end - start - len(instructions)) // 2)
        start = end
    return bytes(units)
