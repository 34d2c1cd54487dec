"""The check of all ranks' programs against each other before they run, with ``DCARRAY_DEBUG=1``."""

from __future__ import annotations

from functools import singledispatch

from dcarray.comm.exchange import plan_matching
from dcarray.comm.exchange.exchange_plan import Transfer
from dcarray.comm.transport.errors import PlanError
from dcarray.comm.transport.objects import gather_objects, pack
from dcarray.comm.transport.protocol import INTERNAL_TAG, Communicator

from .steps import Begin, Exchanges, Finish, Local, Program, Reduce, Step

__all__ = ["check", "matched_steps"]


def check(program: Program, comm: Communicator) -> None:
    """Check this rank's program against those of the others.

    Parameters
    ----------
    program : Program
    comm : Communicator
        All ranks; each of them makes this call.

    Raises
    ------
    PlanError
        On all ranks, when a send and its receive differ or one of them is missing, when ranks have different
        collective steps, or when ranks would wait for each other; the message lists all faults.
    """
    mine = matched_steps(program)
    programs = gather_objects(comm, mine, pack(mine), None)
    assert programs is not None
    try:
        plan_matching.verify(programs)
    except PlanError as error:
        raise PlanError(f"the programs of {comm.size} ranks do not fit together:\n{error}") from None


def matched_steps(program: Program) -> list[plan_matching.Step]:
    """Return the messages and collective steps of a program."""
    return [one for step in program.steps for one in _steps(step, program)]


@singledispatch
def _steps(step: Step, program: Program) -> list[plan_matching.Step]:
    # A library's step: all ranks run it, its messages are its own affair.
    return [plan_matching.CollectiveStep(type(step).__name__, tuple(range(program.size)))]


@_steps.register
def _(step: Local, program: Program) -> list[plan_matching.Step]:
    return []


@_steps.register
def _(step: Reduce, program: Program) -> list[plan_matching.Step]:
    return [plan_matching.CollectiveStep(f"reduce {step.op}", step.ranks, step.counts().collective_bytes)]


@_steps.register
def _(step: Exchanges, program: Program) -> list[plan_matching.Step]:
    return [*_message_steps(step), plan_matching.Wait()]


@_steps.register
def _(step: Begin, program: Program) -> list[plan_matching.Step]:
    return _message_steps(step.what)


@_steps.register
def _(step: Finish, program: Program) -> list[plan_matching.Step]:
    # All messages under way are waited for: all ranks have their steps in the same order.
    return [plan_matching.Wait()]


def _message_steps(step: Exchanges) -> list[plan_matching.Step]:
    """Return the messages that `start_exchanges` sends and receives for a step: one for each peer."""
    receives: dict[int, list[tuple[Transfer, int]]] = {}
    sends: dict[int, list[tuple[Transfer, int]]] = {}
    for item in step.items:
        for into, transfers in ((receives, item.plan.receives), (sends, item.plan.sends)):
            for transfer in transfers:
                into.setdefault(transfer.peer, []).append((transfer, item.itemsize))
    steps: list[plan_matching.Step] = []
    for kind, messages in ((plan_matching.Receive, receives), (plan_matching.Send, sends)):
        for peer, parts in messages.items():
            size = sum(transfer.elements * itemsize for transfer, itemsize in parts)
            what = " + ".join(f"{transfer.elements} of {itemsize} bytes" for transfer, itemsize in parts)
            steps.append(kind(peer, INTERNAL_TAG, size, what))
    return steps
