"""The verifier of programs: it checks lifetimes of memory, and that nodes declare all that they access."""

from __future__ import annotations

from dcarray.ir.analysis.effects import families
from dcarray.lowering.kernel.nodes import Pointer

from . import nodes


class InvalidProgram(Exception):
    """Raised for an invalid program; the text says where and why."""


def verify(program: nodes.Program) -> None:
    """Check a program; raise `InvalidProgram` if it breaks a rule.

    * A temporary is allocated once before its uses and freed once after them, in the same body.
    * No other array is allocated or freed, and every array that is used is declared.
    * A launch accesses no arrays other than those of its windows.
    * The condition of a loop or branch is computed before it.
    """
    given = {array.name for array in program.region.arrays if array.role != "temp"}
    _body(program.body, program, given, frozenset())


def _body(body: tuple[nodes.Node, ...], program: nodes.Program, live: set[str], done: frozenset[str]) -> None:
    """Check a body; ``live`` are the arrays that have memory, ``done`` those that have been written."""
    root, live = families(program.region), set(live)
    here: set[str] = set()
    for number, node in enumerate(body):
        where = f"node {number} ({type(node).__name__})"
        match node:
            case nodes.Alloc(array):
                _need(
                    root.get(array.name) == array.name,
                    f"{where} allocates {array.name}, no memory of its own",
                )
                _need(array.name not in live, f"{where} allocates {array.name}, which is there already")
                live.add(array.name)
                here.add(array.name)
                continue
            case nodes.Free(array):
                _need(array.name in here, f"{where} frees {array.name}, which is not allocated in this body")
                live.remove(array.name)
                here.remove(array.name)
                continue
            case nodes.While(cond=cond) | nodes.Branch(cond=cond):
                first = node.head if isinstance(node, nodes.While) else ()
                _need(cond in done | _written(first), f"{where} is decided by {cond}, which is not made")
        for name in sorted(nodes.touched(node) - _allocated_inside(node)):
            _need(name in root, f"{where} uses {name}, which is not declared")
            _need(root[name] in live, f"{where} uses {name}, which is not allocated")
        if isinstance(node, nodes.Launch):
            _launch(node, where)
        for part in nodes.parts(node):
            _body(part, program, live, done)
        done |= _written((node,))
    _need(not here, f"{', '.join(sorted(here))} is never freed")


def _allocated_inside(node: nodes.Node) -> frozenset[str]:
    """Return the names of the arrays that the bodies of a loop or branch allocate and free."""
    inside = [inner for part in nodes.parts(node) for inner in part]
    own = {inner.array.name for inner in inside if isinstance(inner, nodes.Alloc)}
    return frozenset(own).union(*map(_allocated_inside, inside))


def _launch(node: nodes.Launch, where: str) -> None:
    used = {window.array for window in (*nodes.reads(node), *nodes.writes(node))}
    written = {window.array for window in nodes.writes(node)}
    for buffer, pointer in zip(node.kernel.buffers, node.binding.pointers, strict=True):
        if isinstance(pointer, Pointer):
            told = used if buffer.access == "r" else written
            _need(pointer.array in told, f"{where} uses {pointer.array}, which is in none of its windows")


def _written(body: tuple[nodes.Node, ...]) -> frozenset[str]:
    return frozenset(window.array for node in body for window in nodes.writes(node))


def _need(fine: bool, text: str) -> None:
    if not fine:
        raise InvalidProgram(text)
