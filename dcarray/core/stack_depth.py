"""The number of values on the stack of Python's interpreter where an operator runs."""

from __future__ import annotations

import dis
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CodeType
from typing import Any

__all__ = ["stack_depth"]

_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"})
_JUMPS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


def stack_depth(code: CodeType, offset: int) -> int:
    """Return the number of values on the stack before a binary operator, its operands among them.

    Parameters
    ----------
    code : code
    offset : int
        Of the instruction, in bytes.

    Returns
    -------
    int
        -1 if there is no such operator, or the number is not known: in generators and coroutines, and where
        different ways to the instruction disagree.
    """
    return _depths(code).get(offset, -1)


@lru_cache(256)
def _depths(code: CodeType) -> dict[int, int]:
    """Return the depths before all binary operators that can be reached."""
    if code.co_flags & _SUSPENDED:
        return {}
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: k for k, instruction in enumerate(instructions)}
    depths: dict[int, int] = {}
    ways = [(0, 0)]
    parse: Any = getattr(dis, "_parse_exception_table", None)
    if parse is None:
        return {}
    ways += [(places[entry.target], entry.depth + entry.lasti + 1) for entry in parse(code)]
    while ways:
        k, depth = ways.pop()
        while k < len(instructions):
            if k in depths:
                if depths[k] != depth:
                    return {}
                break
            depths[k] = depth
            one = instructions[k]
            argument = one.arg if one.opcode >= dis.HAVE_ARGUMENT else None
            if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
                after = depth + dis.stack_effect(one.opcode, argument, jump=True)
                ways.append((places[one.argval], after))
            if one.opname in _ENDS or one.opname in _JUMPS:
                break
            depth += dis.stack_effect(one.opcode, argument, jump=False)
            k += 1
    if any(not 0 <= depth <= code.co_stacksize for depth in depths.values()):
        return {}
    return {
        one.offset: depths[k]
        for k, one in enumerate(instructions)
        if k in depths and one.opname == "BINARY_OP"
    }
