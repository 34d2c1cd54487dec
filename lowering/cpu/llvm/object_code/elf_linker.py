"""An ELF linker that loads object code into this process without LLVM.

Linking with LLVM costs a program its import, 10 MB and some 30 ms under the GIL, once.  Objects that LLVM
makes for code loaded at run time (the large code model) need few relocations: sections are laid out,
and relocations are applied.  Other objects are left to LLVM.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from dcarray.lowering.runtime import perf_map
from dcarray.lowering.runtime.forks import held_in_forks
from dcarray.lowering.runtime.stopping import symbols

__all__ = ["LOCK", "MATHEMATICS", "Unlinkable", "keep", "link"]

LOCK = held_in_forks(threading.RLock())
"""Held while code is made or linked, and across ``fork``: a child must not inherit LLVM in the middle of a
compilation."""
MATHEMATICS = ("libm.so.6", "libmvec.so.1") if platform.system() == "Linux" else ()
"""Libraries whose functions compiled code calls."""
# Loaded code lives as long as the process: threads may run it while the interpreter shuts
# down, so neither the compiler nor a library may be disposed of at its end.
_kept: list[Any] = []

_HEAD = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_ELF = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL, _UNWIND = 1, 2, 4, 8, 9, 0x70000001
_WRITE, _ALLOC, _TLS = 1, 2, 0x400
_FUNCTION = 2  # the type of a symbol
_ABSOLUTE, _SPECIAL = 0xFFF1, 0xFF00  # sections of symbols
_R_64, _R_PC32, _R_PLT32, _R_PC64 = 1, 2, 4, 24
_MAX_BYTES = 1 << 26  # bytes


def keep(thing: Any) -> Any:
    """Keep an object alive as long as the process."""
    _kept.append(thing)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


class Unlinkable(Exception):
    """Raised for an object that this linker does not support; the text is the reason."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


def link(code: bytes, names: Sequence[str], libraries: Sequence[str]) -> tuple[tuple[int, ...], Any]:
    """Link object code into this process; return the addresses of its functions ``names``, and the owner of
    the memory: the code may run as long as that lives.

    ``code`` is a relocatable ELF object for x86-64; functions that are not in the process are those of
    ``libraries``. Raises `Unlinkable`.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Unlinkable("another system")
    try:
        return _link(code, names, libraries)
    except (struct.error, IndexError, ValueError, OSError, OverflowError) as error:
        raise Unlinkable(f"{type(error).__name__}: {error}") from error


def _link(code: bytes, names: Sequence[str], libraries: Sequence[str]) -> tuple[tuple[int, ...], Any]:
    sections = _sections(code)
    places, fixed, size = _layout(sections)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for k, place in places.items():
        if sections[k].type == _PROGBITS:
            memory[place : place + sections[k].size] = _part(code, sections[k])
    symbols, named, functions = _symbols(code, sections, {k: start + place for k, place in places.items()})
    for section in sections:
        if section.type not in (_RELA, _REL) or section.info not in places:
            continue
        if section.type == _REL:
            raise Unlinkable("relocations without addends")
        base = places[section.info]
        for offset, info, addend in _RELOCATION.iter_unpack(_part(code, section)):
            if offset + 8 > sections[section.info].size:
                raise Unlinkable("a relocation beyond its section")
            value = _value(symbols[info >> 32], libraries) + addend
            _put(memory, base + offset, start + base + offset, info & 0xFFFFFFFF, value)
    missing = [name for name in names if name not in named]
    if missing:
        raise Unlinkable(f"no {', '.join(missing)}")
    _executable(start, fixed)
    perf_map.note(functions)
    return tuple([named[name] for name in names]), memory


def _sections(code: bytes) -> list[_Section]:
    head = _HEAD.unpack_from(code)
    if not head[0].startswith(_ELF) or head[1:3] != (_RELOCATABLE, _X86_64) or head[11] != _SECTION.size:
        raise Unlinkable("no object for x86-64")
    return [_Section(*_SECTION.unpack_from(code, head[6] + k * _SECTION.size)) for k in range(head[12])]


def _part(code: bytes, section: _Section) -> bytes:
    part = code[section.offset : section.offset + section.size]
    if len(part) != section.size:
        raise Unlinkable("cut short")
    return part


def _layout(sections: Sequence[_Section]) -> tuple[dict[int, int], int, int]:
    """Return the offset of each loaded section by number, the bytes of the read-only sections, which come
    first, and the bytes of all.  Unwind tables are left out: no exception passes through this code."""
    places: dict[int, int] = {}
    fixed = end = 0
    for written in (0, _WRITE):
        for k, section in enumerate(sections):
            if not section.flags & _ALLOC or section.type == _UNWIND or section.flags & _WRITE != written:
                continue
            if section.type not in (_PROGBITS, _NOBITS) or (section.size and section.flags & _TLS):
                raise Unlinkable(f"a section of type {section.type} with flags {section.flags}")
            align = max(section.align, 1)
            if align > mmap.PAGESIZE:
                raise Unlinkable(f"a section at multiples of {align}")
            end = -(-end // align) * align
            places[k] = end
            end += section.size
        if not 0 < end < _MAX_BYTES:
            raise Unlinkable(f"{end} bytes")
        end = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        fixed = fixed or end
    return places, fixed, end


def _symbols(
    code: bytes, sections: Sequence[_Section], starts: dict[int, int]
) -> tuple[list[int | str], dict[str, int], list[perf_map.Function]]:
    """Return the address of each symbol (of an undefined one the name), the addresses of the defined ones by
    name, and the functions for perf's map."""
    symbols: list[int | str] = []
    addresses: dict[str, int] = {}
    functions = []
    for table in sections:
        if table.type != _SYMTAB:
            continue
        texts = _part(code, sections[table.link])
        for at, info, _, where, value, size in _SYMBOL.iter_unpack(_part(code, table)):
            name = texts[at : texts.index(b"\0", at)].decode()
            if where == 0:
                symbols.append(name)
            elif where == _ABSOLUTE:
                symbols.append(value)
            elif where in starts and where < _SPECIAL:
                symbols.append(starts[where] + value)
                if info & 15 == _FUNCTION:
                    functions.append(perf_map.Function(name, starts[where] + value, size))
                if info >> 4:  # not a local one
                    addresses[name] = starts[where] + value
            else:
                symbols.append("")  # of a section that is not loaded, or of a special one
        return symbols, addresses, functions
    raise Unlinkable("no symbols")


def _value(symbol: int | str, libraries: Sequence[str]) -> int:
    if not isinstance(symbol, str):
        return symbol
    address = _elsewhere(symbol, tuple(libraries)) if symbol else 0
    if not address:
        raise Unlinkable(f"no {symbol or 'such symbol'} here")
    return address


@cache
def _elsewhere(name: str, libraries: tuple[str, ...]) -> int:
    """Return the address of a function in the process or in these libraries; 0 if there is none."""
    if name in symbols:
        return symbols[name]
    for library in (None, *libraries):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


def _put(memory: mmap.mmap, at: int, here: int, kind: int, value: int) -> None:
    """Apply a relocation of the given kind at offset ``at`` of the memory, whose address is ``here``."""
    if kind == _R_64:
        memory[at : at + 8] = (value & (1 << 64) - 1).to_bytes(8, "little")
    elif kind == _R_PC64:
        memory[at : at + 8] = (value - here).to_bytes(8, "little", signed=True)
    elif kind in (_R_PC32, _R_PLT32):
        memory[at : at + 4] = (value - here).to_bytes(4, "little", signed=True)
    else:
        raise Unlinkable(f"a relocation of type {kind}")


def _executable(start: int, size: int) -> None:
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if protect(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise Unlinkable(f"memory cannot be made executable: error {ctypes.get_errno()}")
