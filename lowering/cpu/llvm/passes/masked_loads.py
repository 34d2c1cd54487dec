"""Isolation of loads from the masked instructions that use them.

With AVX-512 LLVM makes one instruction of ``select(mask, load, other)``.  Its load waits for the mask, so a
kernel whose mask comes from memory has the latencies of both arrays in sequence, and takes twice as long.
An empty inline assembly statement behind the load keeps it a separate instruction.
"""

from __future__ import annotations

import re

from dcarray.lowering.cpu.llvm.types import BITS

from .metadata import FUNCTION

__all__ = ["isolate_masked_loads"]

_NAME = re.compile(r"%[\w.]+")
_LINE = re.compile(r"^  (%[\w.]+) = (?:tail call fast |tail call )?(\w+) (.*)$")
_VECTOR = re.compile(r"<(\d+) x (i8|i16|i32|i64|float|double)>,")
_REGISTERS = (128, 256, 512)
# operations that AVX-512 masks, and those that derive a mask from another
_MASKED = frozenset(
    {"add", "sub", "mul", "and", "or", "xor", "fadd", "fsub", "fmul", "fdiv", "fcmp", "icmp", "fneg"}
)


def isolate_masked_loads(text: str) -> str:
    """Return optimised LLVM text with a barrier after each load that LLVM would fold into a masked
    instruction; the same object if there is no such load."""
    if " select <" not in text and " and <" not in text:
        return text
    return FUNCTION.sub(lambda match: _function(match[0]), text)


def _function(text: str) -> str:
    lines = text.split("\n")
    definitions: dict[str, tuple[str, str]] = {}  # what a name is: instruction and operands
    users: dict[str, list[str]] = {}  # and who uses it; a phi's own, or a store, has no name
    loads: list[tuple[int, str, str]] = []
    for number, line in enumerate(lines):
        match = _LINE.match(line)
        name = match[1] if match else ""
        for operand in _NAME.findall(match[3] if match else line):
            users.setdefault(operand, []).append(name)
        if match is None:
            continue
        definitions[name] = match[2], match[3]
        kind = _VECTOR.match(match[3]) if match[2] == "load" else None
        if kind is not None and int(kind[1]) * BITS[kind[2]] in _REGISTERS:
            loads.append((number, name, kind[0][:-1]))
    for number, name, vector in loads:
        if _under_mask(name, definitions, users):
            raw = f"%raw.{name[1:]}"  # a name that is a number takes nothing after it
            lines[number] = (
                f"{lines[number].replace(name, raw, 1)}\n"
                f'  {name} = tail call {vector} asm "", "=v,0"({vector} {raw})'
            )
    return "\n".join(lines)


def _under_mask(name: str, definitions: dict[str, tuple[str, str]], users: dict[str, list[str]]) -> bool:
    """Whether LLVM would fold a load, or the one operation on it, into a masked AVX-512 instruction."""
    for operations in range(2):
        used = users.get(name, [])
        if len(used) != 1 or used[0] not in definitions:
            return False
        kind, operands = definitions[used[0]]
        if kind == "select" and operands.startswith("<"):
            return True
        if operations and kind == "and" and " x i1>" in operands:
            return True
        if kind not in _MASKED:
            return False
        name = used[0]
    return False
