"""Quiet comparisons, which raise no floating-point flag for a NaN, in optimised LLVM text.

LLVM selects x86's ordered comparisons of vectors in the signalling form, which raises the invalid flag for a
NaN.  AVX has each in a quiet form, too, which this pass substitutes.
"""

from __future__ import annotations

import re
from collections import Counter

from dcarray.lowering.cpu.llvm.types import BITS

from .metadata import FUNCTION

__all__ = ["MARK", "quiet_comparisons"]

#: An attribute of the functions that this is for.
MARK = '"quiet-comparisons"'

_GROUP = re.compile(rf"^attributes (#\d+) = .*{MARK}", re.M)
_COMPARE = re.compile(
    r"^  (%[\w.]+) = fcmp (?:[a-z]+ )*?([ou][lg][te]) (?:<(\d+) x )?(float|double)>? (.*)$", re.M
)
#: The numbers of AVX's predicates, those that raise nothing.
_PREDICATES = {"olt": 17, "ole": 18, "uge": 21, "ugt": 22, "ult": 25, "ule": 26, "oge": 29, "ogt": 30}
_SUFFIX = {"float": "ps", "double": "pd"}
_REGISTERS = (128, 256, 512)
_AND = re.compile(r"^  (%[\w.]+) = and <\d+ x i1> (%[\w.]+), (%[\w.]+)$", re.M)
_NAME = re.compile(r"%[\w.]+")
_MADE = re.compile(
    r"^(  (%[\w.]+) = tail call <\d+ x i1> @llvm\.x86\.avx512\.mask\.cmp.*(<i1 true.*?>).*)$", re.M
)


def quiet_comparisons(text: str) -> str:
    """Return optimised LLVM text with the comparisons in marked functions made quiet; the same object if
    there are no marked functions."""
    groups = _GROUP.findall(text)
    if not groups:
        return text
    needed: dict[str, None] = {}

    def compare(match: re.Match[str]) -> str:
        name, how, count, kind, operands = match.groups()
        a, b = _operands(operands)
        if count is None or int(count) * BITS[kind] not in _REGISTERS:
            return _compare_numbers(name, how, f"<{count} x {kind}>" if count else kind, a, b)
        bits = int(count) * BITS[kind]
        vector, mask = f"<{count} x {kind}>", f"<{count} x i1>"
        function = f"{mask} @llvm.x86.avx512.mask.cmp.{_SUFFIX[kind]}.{bits}"
        rounding = bits == 512  # one more argument: as usual
        needed[f"declare {function}({vector}, {vector}, i32 immarg, {mask}{', i32 immarg' * rounding})"] = (
            None
        )
        every = "<" + ", ".join(["i1 true"] * int(count)) + ">"
        given = f"{vector} {a}, {vector} {b}, i32 {_PREDICATES[how]}, {mask} {every}{', i32 4' * rounding}"
        return f"  {name} = tail call {function}({given})"

    def function(match: re.Match[str]) -> str:
        head = match[0].partition("\n")[0]
        marked = any(f" {group} " in head for group in groups)
        return _fold_masks(_COMPARE.sub(compare, match[0])) if marked else match[0]

    new = FUNCTION.sub(function, text)
    return text if new == text else "\n".join([new, *needed, ""])


def _fold_masks(text: str) -> str:
    """Return a function in which a comparison that is combined with a mask becomes one masked instruction."""
    masks: dict[str, tuple[str, str]] = {name: (line, every) for line, name, every in _MADE.findall(text)}
    if not masks:
        return text
    uses = Counter(_NAME.findall(text))
    spent: set[str] = set()

    def both(match: re.Match[str]) -> str:
        name: str = match[1]
        sides: list[str] = [match[2], match[3]]
        for one, other in (sides, sides[::-1]):
            if one in masks and uses[one] == 2 and one != other:  # made and used
                line, every = masks[one]
                spent.add(line)
                return line.replace(f"{one} =", f"{name} =", 1).replace(every, other)
        return match[0]

    text = _AND.sub(both, text)
    return "\n".join(line for line in text.split("\n") if line not in spent)


def _operands(text: str) -> tuple[str, str]:
    """Return the two operands in the text of an instruction; a constant operand may contain commas."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char in "<([{") - (char in ">)]}")
        if char == "," and not depth:
            return text[:at], text[at + 2 :]
    raise ValueError(f"not two operands: {text}")


def _compare_numbers(name: str, how: str, kind: str, a: str, b: str) -> str:
    """Return a comparison of operands in which NaNs are replaced first, for scalars (which may become
    vectors) and for vectors of no register's size."""
    below = how in ("ult", "ule", "ogt", "oge")  # what is put in for NaN gives False, or True if that is due
    low, high = (_constant(kind, value) for value in ("0.0", "1.0"))
    x, y = (low, high) if below else (high, low)
    mask = f"<{kind[1:].split()[0]} x i1>" if kind[0] == "<" else "i1"
    known, left, right = (f"%{what}.{name[1:]}" for what in ("known", "left", "right"))
    return "\n".join(
        [
            f"  {known} = fcmp ord {kind} {a}, {b}",
            f"  {left} = select {mask} {known}, {kind} {a}, {kind} {x}",
            f"  {right} = select {mask} {known}, {kind} {b}, {kind} {y}",
            f"  {name} = fcmp {how} {kind} {left}, {right}",
        ]
    )


def _constant(kind: str, value: str) -> str:
    if kind[0] != "<":
        return value
    count, _, element = kind[1:-1].split()
    return "<" + ", ".join([f"{element} {value}"] * int(count)) + ">"
