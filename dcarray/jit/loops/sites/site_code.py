"""Code objects with sites: their constants, and their line tables.

CPython gives no line to the instructions that take a value off the stack when a ``match`` has failed.  A tool
that sees lines would see that of the next instruction twice: once for the site, and once for the statement.
Nor does Python 3.12 give one to the end of a function or a loop right after the code that leaves a site.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from opcode import opmap
from operator import is_
from types import CodeType
from typing import Any

from .codes import inner_codes
from .site import Site
from .site_source import SitePlace, constant
from .watch import Watch

__all__ = ["lined", "with_constants"]

_ENTRIES = re.compile(rb"[\x80-\xff][\x00-\x7f]*", re.DOTALL)  # only their first bytes are above 127
_POP = opmap["POP_TOP"]
_OF = {b"RETURN_CONST": b""} | {n.encode(): re.escape(bytes([k])) for n, k in opmap.items() if k < 256}
_LEAVING = re.compile(
    b"(?s)%(POP_TOP)b.(?:[%(LOAD_CONST)b%(EXTENDED_ARG)b].)*"
    b"[%(RETURN_VALUE)b%(RETURN_CONST)b%(JUMP_FORWARD)b%(JUMP_BACKWARD)b].(?:%(CACHE)b.)*" % _OF
)  # in bytes, two for each instruction: the end of a function or of a block
_NONE, _LINES, _FEW_LINES = 15 << 3 | 128, 13, 10  # kinds of entries
_LINED = _LINES << 3 | 128
_MORE = 64  # in a byte of a number: another one follows


def with_constants(
    code: CodeType, plain: CodeType, places: Sequence[SitePlace], sites: Sequence[Site],
    left: frozenset[Site] = frozenset(),
) -> CodeType:  # fmt: skip
    """Return a code object, with its inner ones, with the sites in place of their constants.  Those of which
    all sites are in ``left``, and an earlier run has left one to Python, are plain."""
    known: dict[str, Any] = {constant(k): site for k, site in enumerate(sites)}
    for place, site in zip(places, sites, strict=True):
        if place.watch >= 0:
            known.setdefault(constant(place.watch, "watch"), Watch()).add(site)
    return _replaced(code, plain, known, left)


def _replaced(code: CodeType, plain: CodeType, known: Mapping[str, Any], left: frozenset[Site]) -> CodeType:
    """Return the result of `with_constants`, given the objects by the constants that stand for them."""
    pairs = zip(inner_codes(code), inner_codes(plain), strict=True)
    inner = iter([_replaced(*pair, known, left) for pair in pairs])
    own = [site for c in code.co_consts if type(c) is str and type(site := known.get(c)) is Site]
    base = plain if left.issuperset(own) and any(site.doubtful for site in own) else code
    consts = [
        known.get(c, c) if type(c) is str else next(inner) if type(c) is CodeType else c
        for c in base.co_consts
    ]
    return base if all(map(is_, consts, base.co_consts)) else base.replace(co_consts=tuple(consts))


def lined(code: CodeType) -> CodeType:
    """Return a code object, with its inner ones, in which such instructions have lines."""
    inner = tuple([lined(const) if type(const) is CodeType else const for const in code.co_consts])
    return code.replace(co_consts=inner, co_linetable=_line_table(code))


def _line_table(code: CodeType) -> bytes:
    """Return the line table of a code object, with the line of the next instruction for such instructions."""
    entries: list[bytes] = _ENTRIES.findall(code.co_linetable)
    place, units = 0, code.co_code
    for k, entry in enumerate(entries):
        end = place + 2 * ((entry[0] & 7) + 1)
        if entry[0] >= _NONE and units[place] == _POP:
            left = _LEAVING.match(units, place, end)
            if left:  # the line of the instruction before; what follows, such as a handler, has none
                size, rest = left.end() - place, end - left.end()
                entries[k] = bytes([_LINED + size // 2 - 1, 0, *[_NONE + rest // 2 - 1] * (rest > 0)])
            elif k + 1 < len(entries) and entries[k + 1][0] < _NONE:
                lines, entries[k + 1] = _lines(entries[k + 1])
                entries[k] = bytes([_LINED + (entry[0] & 7)]) + lines
        place = end
    return b"".join(entries)


def _lines(entry: bytes) -> tuple[bytes, bytes]:
    """Return by how many lines an entry is after the one before, and the entry that is in the same line."""
    kind = entry[0] >> 3 & 15
    if kind >= _LINES:
        end = next(k for k in range(1, len(entry)) if not entry[k] & _MORE) + 1
        return entry[1:end], entry[:1] + b"\0" + entry[end:]
    more = max(kind - _FEW_LINES, 0)
    return bytes([more << 1]), bytes([entry[0] - (more << 3)]) + entry[1:]
