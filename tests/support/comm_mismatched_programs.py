"""Programs of ranks that do not match: on simulated ranks and, as ``python -m``, under ``mpiexec``."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from ir_regions import make_case

from dcarray import comm
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.matching import check
from dcarray.comm.planning.rank_program.steps import ArrayExchange, Begin, Exchanges, Finish, Program, Step


def moved() -> Program:
    """A program that sends something on more than one rank, the same on all."""
    world = comm.world()
    grid = comm.ProcessGrid((world.size,))
    for seed in range(200):
        region = make_case(seed).region
        layouts = {a.name: comm.Layout.blocks(a.shape, grid) for a in region.arrays if len(a.shape)}
        try:
            programs = [plan(region, layouts, world.size, rank) for rank in range(world.size)]
        except comm.PlanError:  # some arrays have to be whole first
            continue
        if sum(one.counts.messages_sent > 0 for one in programs) > 1:
            return programs[world.rank]
    raise AssertionError("no program sends anything")


def changed(program: Program, change: Callable[[ArrayExchange], ArrayExchange]) -> Program:
    """The program with another first exchange that sends something."""
    steps = list(program.steps)
    for k, step in enumerate(steps):
        if isinstance(step, Exchanges) and any(item.plan.sends for item in step.items):
            items = list(step.items)
            at = next(i for i, item in enumerate(items) if item.plan.sends)
            items[at] = change(items[at])
            steps[k] = replace(step, items=tuple(items))
            return replace(program, steps=tuple(steps))
    return program


def unsent(item: ArrayExchange) -> ArrayExchange:
    return replace(item, listing=lambda: replace(item.plan, sends=item.plan.sends[1:]))


def larger(item: ArrayExchange) -> ArrayExchange:
    return replace(item, itemsize=2 * item.itemsize)


def overlapped(program: Program) -> Program:
    """The program with exchanges that begin and end in steps of their own."""
    steps: list[Step] = []
    for step in program.steps:
        steps += [Begin(step), Finish(step)] if isinstance(step, Exchanges) else [step]
    return replace(program, steps=tuple(steps))


def shorter(program: Program) -> Program:
    """The program without its last step in which it receives, and all later ones."""
    last = max(k for k, step in enumerate(program.steps) if step.counts().messages_received)
    return replace(program, steps=program.steps[:last])


def check_error(program: Program) -> str:
    """The error of the check, after which all ranks go on together."""
    world = comm.world()
    found = ""
    try:
        check(program, world)
    except comm.PlanError as error:
        found = str(error)
    assert comm.Allreduce(np.array(1)) == world.size
    return found


def main() -> None:
    """Check programs that match, and programs of which that of rank 1 differs."""
    world, program = comm.world(), moved()
    first = next(rank for rank in range(world.size) if comm.Allreduce(np.array(_sends(program, rank))))
    fits = check_error(program)
    assert not fits, fits
    assert not check_error(overlapped(program))
    assert "are sent and" in check_error(
        overlapped(changed(program, larger) if world.rank == first else program)
    )
    for change in (unsent, larger):
        found = check_error(changed(program, change) if world.rank == first else program)
        assert f"the programs of {world.size} ranks do not fit together" in found
        assert f"from rank {first} to rank" in found
    found = check_error(shorter(program) if world.rank == first else program)
    assert f"to rank {first}, tag 32767: " in found and "not received" in found, found


def _sends(program: Program, rank: int) -> int:
    return int(comm.world().rank == rank and program.counts.messages_sent > 0)


if __name__ == "__main__":
    main()
    print("ended")
