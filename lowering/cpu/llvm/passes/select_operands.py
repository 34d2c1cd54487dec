"""Isolation of the operands of selects, so that they are computed for all elements.

Of ``select(mask, x / y, other)`` LLVM makes one masked instruction with AVX-512, and of a scalar select a
branch around the division; neither raises a floating-point exception where the mask does not hold.  NumPy's
``where(c, x / y, z)`` divides everywhere before it selects, and warns.  An empty inline assembly statement
behind the division keeps the two separate.
"""

from __future__ import annotations

import re

from dcarray.lowering.cpu.llvm.types import BITS

from .metadata import FUNCTION

__all__ = ["isolate_select_operands"]

_BRANCHES = r"predphi|spec\.select|[qv]\d"  # names of selects that LLVM makes of branches
_CHOICE = re.compile(rf"^  %(?!{_BRANCHES})[\w.]+ = select (?:<\d+ x i1>|i1) (.*)$", re.M)
_NAME = re.compile(r"%[\w.]+")
_TYPE = r"(<\d+ x \w+>|\w+)"
# Operations that may raise another exception than inexact; the last group is the dtype.
_OPERATION = re.compile(
    r"^  (%[\w.]+) = (?:"
    rf"(?:fadd|fsub|fmul|fdiv|frem) (?:(?!half|float|double)[a-z]+ )*{_TYPE} .*"
    rf"|(?:tail )?call (?:(?!half|float|double)[a-z]+ )*{_TYPE} @llvm\.(?:sqrt|fma|fmuladd)\..*"
    rf"|(?:fptosi|fptoui|fptrunc) .* to {_TYPE}.*)$",
    re.M,
)
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_REGISTERS = (128, 256, 512)
_SINGLE = {"float": "v", "double": "v", "half": "r", "i8": "r", "i16": "r", "i32": "r", "i64": "r"}


def isolate_select_operands(text: str, masks: bool) -> str:
    """Return the optimised LLVM text with barriers after operands of selects; the same object if none is
    needed. ``masks``: vector instructions have masks, so that vectors need barriers, too."""
    if " select " not in text:
        return text
    return FUNCTION.sub(lambda match: _function(match[0], masks), text)


def _function(text: str, masks: bool) -> str:
    chosen = {name for operands in _CHOICE.findall(text) for name in _NAME.findall(operands)}
    if not chosen:
        return text

    def apart(match: re.Match[str]) -> str:
        name = match[1]
        kind = match[2] or match[3] or match[4]
        register = _register(kind, masks)
        if name not in chosen or register is None:
            return match[0]
        # a name that is a number takes nothing after it
        everywhere, bits, held = (f"%{what}.{name[1:]}" for what in ("everywhere", "bits", "held"))
        line = match[0].replace(name, everywhere, 1)
        if "half" not in kind:
            return f"{line}\n  {name} = {_barrier(kind, register, everywhere)}"
        words = kind.replace("half", "i16")  # few processors have registers of halves
        return "\n".join(
            [
                line,
                f"  {bits} = bitcast {kind} {everywhere} to {words}",
                f"  {held} = {_barrier(words, register, bits)}",
                f"  {name} = bitcast {words} {held} to {kind}",
            ]
        )

    return _OPERATION.sub(apart, text)


def _barrier(kind: str, register: str, value: str) -> str:
    """Return the empty inline assembly statement that serves as a barrier for a value."""
    return f'tail call {kind} asm "", "={register},0"({kind} {value})'


def _register(kind: str, masks: bool) -> str | None:
    """Return the register constraint of a value; None if it need not be isolated, or cannot be."""
    vector = _VECTOR.fullmatch(kind)
    if vector is None:
        return _SINGLE.get(kind)
    held = masks and int(vector[1]) * BITS.get(vector[2], 0) in _REGISTERS
    return "v" if held else None
