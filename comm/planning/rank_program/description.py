"""The program of one rank in words, for ``dc.explain``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dcarray.ir.nodes import Call
from dcarray.ir.text import dump

from .steps import Exchanges, Frame, Local, Note, Program, Reduce, Step

__all__ = ["program_lines"]

# The meaning of the communication calls of a placed region.
_CALLS = {
    "comm.redistribute": "x -> y: the elements of x are brought to where y's layout has them",
    "comm.halo": "x: each rank receives that part of its neighbours' blocks which lies around its own",
    "comm.beyond": "x: each rank computes so many of its neighbours' elements too, instead of receiving them",
    "comm.reduce": "x -> y: what ranks have of the same elements is folded into one result for all of them",
    "comm.frame": "x -> y: the border of x is copied",
}


def program_lines(program: Program, note_text: Callable[[Note], str]) -> Iterator[str]:
    """Yield lines of text with the placed region, the planner's reasons, and the steps of this rank.

    Parameters
    ----------
    program : Program
    note_text : callable
        Returns the text of a note, with its line of the user's code.
    """
    called = {stmt.op for stmt in program.region.body if isinstance(stmt, Call)}
    for op, meaning in _CALLS.items():
        if op in called:
            yield f"{op} {meaning}"
    yield from dump(program.region).rstrip().splitlines()
    yield from (f"  - {note_text(note)}" for note in program.notes)
    for number, step in enumerate(program.steps):
        yield f"step {number}: {_step_text(step)}; {_traffic_text(step)}"


def _step_text(step: Step) -> str:
    if isinstance(step, Local):
        count = len(step.region.body)
        return f"{count} statement{'s'[: count != 1]} on this rank's blocks, shown below"
    if isinstance(step, Reduce):
        return f"fold {step.source.name} into {step.target.name} ({step.op}) with the ranks {step.ranks}"
    exchanges = getattr(step, "what", step)  # of one that begins or ends
    if isinstance(exchanges, Exchanges):
        items = dict.fromkeys((item.source, item.target) for item in exchanges.items)
        moved = ", ".join(f"halo of {a}" if a == b else f"{a} to {b}" for a, b in items)
        begins = {"Begin": "begin to exchange", "Finish": "wait for"}.get(type(step).__name__, "exchange")
        return f"{begins} {moved}"
    name = "copy" if isinstance(step, Frame) else type(step).__name__.lower()
    read, written = (", ".join(dict.fromkeys(names)) for names in (step.reads, step.writes))
    return f"{name} {read} to {written}"


def _traffic_text(step: Step) -> str:
    """Return text with the number of messages and bytes that this rank sends and receives in a step."""
    counts, said = step.counts(), []
    for verb, messages, nbytes in (
        ("sends", counts.messages_sent, counts.bytes_sent),
        ("receives", counts.messages_received, counts.bytes_received),
    ):
        if messages:
            said.append(f"{verb} {messages} message{'s'[: messages != 1]}, {nbytes:,} bytes")
    if counts.collectives:
        said.append(f"{counts.collective_bytes:,} bytes of each rank")
    return ", ".join(said) or "nothing travels"
