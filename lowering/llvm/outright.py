"""Operations whose results a mask chooses from, kept instructions without a mask.

With AVX-512 LLVM makes one instruction of ``select(mask, x / y, other)``, which raises no floating-point
exception where the mask does not hold.  NumPy's ``where(c, x / y, z)`` has divided everywhere before it
chooses, and warns.  A statement that does nothing, put behind the division, keeps the choice apart.
"""

from __future__ import annotations

import re

from .kinds import BITS

__all__ = ["outright"]

_FUNCTION = re.compile(r"^define .*?^}$", re.M | re.S)
_CHOICE = re.compile(r"^  %[\w.]+ = select <\d+ x i1> (.*)$", re.M)
_NAME = re.compile(r"%[\w.]+")
# What may raise something else than that a result is not exact; the last group is its dtype.
_OPERATION = re.compile(
    r"^  (%[\w.]+) = (?:"
    r"(?:fadd|fsub|fmul|fdiv|frem) (?:[a-z]+ )*(<(\d+) x (\w+)>) .*"
    r"|(?:tail )?call (?:[a-z]+ )*(<(\d+) x (\w+)>) @llvm\.(?:sqrt|fma|fmuladd)\..*"
    r"|(?:fptosi|fptoui|fptrunc) .* to (<(\d+) x (\w+)>).*)$",
    re.M,
)
_REGISTERS = (128, 256, 512)


def outright(text: str) -> str:
    """The optimised LLVM text with such operations kept apart; the same object where there are none."""
    if " select <" not in text:
        return text
    return _FUNCTION.sub(lambda found: _function(found[0]), text)


def _function(text: str) -> str:
    chosen = {name for operands in _CHOICE.findall(text) for name in _NAME.findall(operands)}
    if not chosen:
        return text

    def apart(found: re.Match[str]) -> str:
        name = found[1]
        vector, count, kind = next(found.group(k, k + 1, k + 2) for k in (2, 5, 8) if found[k])
        if name not in chosen or kind not in BITS or int(count) * BITS[kind] not in _REGISTERS:
            return found[0]
        made = f"%everywhere.{name[1:]}"  # a name that is a number takes nothing after it
        line = found[0].replace(name, made, 1)
        return f'{line}\n  {name} = tail call {vector} asm "", "=v,0"({vector} {made})'

    return _OPERATION.sub(apart, text)
