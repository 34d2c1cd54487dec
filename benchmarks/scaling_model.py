"""Modelled times of the papers' kernels: compared with measured ones, and for a machine like Piz Daint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dcarray import comm

from .papers import Program
from .scaling_counts import bound, planned, summa, work

__all__ = ["DAINT", "checked", "counted"]

# One process on each 18-core socket, as the paper runs them.  Both of a node share its way into the network.
DAINT = comm.Machine(
    name="like Piz Daint's multicore nodes, a process of 18 threads on each socket",
    link=comm.Link((comm.Line(latency=1.3e-6, bandwidth=5e9),), gap=0.4e-6),
    flops=0.8 * 18 * 2.1e9 * 16,
    memory=0.8 * 76.8e9,
    cache=200e9,
    cached=45e6,
    step=2e-6,
    source=(
        "network: Alverson, Froese, Kaplan and Roweth, Cray XC Series Network (WP-Aries01-1112, 2012): a "
        "message of MPI in 1.3 us, 10 GB/s into a node, of which a process has half; sockets: Intel's data "
        "sheet of the Xeon E5-2695 v4: 18 cores of 2.1 GHz with 16 operations a cycle, 45 MB of cache, 76.8 "
        "GB/s to memory, of which 80% are taken; assumed: 200 GB/s to the cache, 2 us to start and end 18 "
        "threads on a statement, 0.4 us for each further message"
    ),
)


def counted(program: Program, ranks: Sequence[int], machine: comm.Machine) -> dict[str, dict[str, Any]]:
    """Return for each number of ranks, among them 1, the communication of one, its lower bound, and modelled
    efficiency, as figures that can be written as JSON."""
    found: dict[str, dict[str, Any]] = {}
    alone = 0.0
    for size in ranks:
        sizes = program.at(size)
        made, least = planned(program, sizes, size), bound(program.name, sizes, size)
        flops, moved, held = work(program.name, sizes)
        share = size * made.times
        local = comm.Phase(flops / share, moved / share, held / size, made.counted.statements)
        seconds = comm.predict(made.phases(local), machine)
        alone = seconds if size == 1 else alone
        found[str(size)] = {
            "sizes": sizes,
            "rank": made.rank,
            "planning": made.seconds,
            "messages": made.messages,
            "bytes": made.received,
            "whole": made.counted.whole,
            "bound": least.nbytes,
            "formula": least.formula,
            "summa": summa(program.name, sizes, size),
            "seconds": seconds,
            "efficiency": alone / seconds,
        }
    return found


def checked(program: Program, told: Mapping[str, Any], here: comm.Machine) -> dict[str, Any]:
    """Return the comparison of modelled with measured times on several ranks.

    The time of local work is that of as many independent processes at once (or of one process, if that was
    not measured); the model adds the time of the counted messages.  ``told`` is the result of
    `scaling.Measured.run`; each number of ranks has seconds as predicted and measured, and the error.
    """
    found: dict[str, Any] = {}
    contenders = told["contenders"]
    for each in contenders.values():
        ranks = each["ranks"]
        if each["contender"] != "dcarray" or ranks < 2 or "seconds" not in each:
            continue
        local = contenders.get(f"dcarray x{ranks}", contenders.get("dcarray 1", {})).get("seconds")
        if local is None or "counts" not in each:
            continue
        counts = each["counts"]
        times = told["sizes"][ranks].get("T", 2) - 1
        messages = max(counts["messages_sent"], counts["messages_received"])
        nbytes = max(counts["bytes_sent"], counts["bytes_received"])
        turns = min(2 * times, messages) if "T" in told["sizes"][ranks] else min(1, messages)
        phases = []
        if turns:
            phases.append(
                comm.Phase(messages=messages // turns, nbytes=nbytes // turns, steps=0, times=turns)
            )
        if calls := counts["collectives"]:
            one = comm.Collective("allreduce", ranks, counts["collective_bytes"] / calls)
            phases.append(comm.Phase(collectives=(one,), steps=0, times=calls))
        seconds = local + comm.predict(phases, here)
        found[str(ranks)] = {
            "predicted": seconds,
            "measured": each["seconds"],
            "error": seconds / each["seconds"] - 1,
        }
    return found
