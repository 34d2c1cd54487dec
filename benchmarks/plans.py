"""Times planning (compilation): ``python -m benchmarks plans [--rounds N] [--only WORD]``.

For typical programs: the processor time of a planning process from its start until it accepts requests and
until its first reply, that of a reply by a process that was ready before, and that of the parts of a plan in
this process: the region, passes, schedules, LLVM, serialisation.  A planning process has one thread and never
waits, so on a free processor these are wall-clock times.  No cache folder is used.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dcarray as dc
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.lowering import compilation
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.program import code_cache, serialise
from dcarray.plans import requests, server
from dcarray.plans.server_handle import PlanningProcess

from .measure import described, machine
from .plan_programs import PROGRAMS

_IDLE = 0.1  # seconds without work after which a planning process is ready
_PARTS = ("region", "passes", "schedules", "LLVM", "serialise")


def requests_of(program: Callable[[], object]) -> list[requests.Request]:
    """Return the requests for plans that a program makes, each once."""
    found: list[requests.Request] = []
    plain = requests.make_plan

    def make_plan(request: requests.Request, *others: Any, **named: Any) -> requests.PlanResult:
        made = plain(request, *others, **named)
        if request.text() not in [one.text() for one in found]:
            found.append(request)
        return made

    requests.make_plan = make_plan
    try:
        with dc.options(jit="eager", eager_below=0, cache_dir=None):
            program()
    finally:
        requests.make_plan = plain
    return found


def _started() -> PlanningProcess:
    return PlanningProcess(0, lambda: False)


def _settled(process: PlanningProcess) -> float:
    """Wait until a planning process is idle; return its processor time in seconds."""
    process.begin()
    used = -1.0
    while (now := process.processor_seconds()) > used:
        used = now
        time.sleep(_IDLE)
    return used


def first_replies(asked: list[requests.Request]) -> tuple[float, float, float]:
    """Return three processor times of a planning process in milliseconds.

    From its start until it accepts requests; from its start until it has answered; and of an answer by a
    process that was ready before.
    """
    messages = [server.message(request) for request in asked]
    process = _started()
    process.begin()
    figures = [process.processor_seconds()]
    for fresh in (True, False):
        before = 0.0 if fresh else _settled(process)
        for one in messages:
            process.ask(one)
        figures.append(process.processor_seconds() - before)
        process.close()
        process = _started()
    process.close()
    ready, cold, warm = (1e3 * figure for figure in figures)
    return ready, cold, warm


@contextmanager
def _timed(spent: dict[str, float], part: str, owner: Any, name: str) -> Iterator[None]:
    """A context in which the processor time of a function is added to ``spent``."""
    plain = getattr(owner, name)

    def run(*given: Any, **named: Any) -> Any:
        start = time.process_time()
        try:
            return plain(*given, **named)
        finally:
            spent[part] = spent.get(part, 0.0) + 1e3 * (time.process_time() - start)

    setattr(owner, name, run)
    try:
        yield
    finally:
        setattr(owner, name, plain)


def parts(asked: list[requests.Request]) -> dict[str, float]:
    """Return the milliseconds of processor time of the parts of plans, made in this process."""
    spent: dict[str, float] = {}
    code_cache.forget()
    with (
        _timed(spent, "passes", Pipeline, "run"),
        _timed(spent, "schedules", compilation, "compile_region"),
        _timed(spent, "LLVM", engine, "compile_object"),
        _timed(spent, "serialise", serialise, "serialised"),
        _timed(spent, "region", type(asked[0]), "plan_input"),
    ):
        for request in asked:
            server.answer(request)
    spent["schedules"] -= spent.get("LLVM", 0.0)
    return spent


def main(arguments: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks plans", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many rounds")
    parser.add_argument("--only", metavar="WORD", default="", help="only programs whose name holds WORD")
    args = parser.parse_args(arguments)
    print(described(machine()))
    process = _started()
    print(f"a planning process has used {1e3 * _settled(process):.0f} ms of a processor when it is ready")
    process.close()
    print(
        "milliseconds until a fresh process can be asked, and answers; until a ready one answers; of that, in"
    )
    print(f"{'':22}{'asked':>9}{'first':>9}{'ready':>9}" + "".join(f"{part:>11}" for part in _PARTS))
    for program in PROGRAMS:
        if args.only not in program.__name__:
            continue
        asked = requests_of(program)
        if not asked:
            print(f"{program.__name__:22} asks for no plan")
            continue
        replies = [first_replies(asked) for _ in range(args.rounds)]
        figures = [statistics.median(column) for column in zip(*replies, strict=True)]
        parts(asked)
        spent = [parts(asked) for _ in range(args.rounds)]
        figures += [statistics.median([one.get(part, 0.0) for one in spent]) for part in _PARTS]
        widths = (9, 9, 9, *(11 for _ in _PARTS))
        cells = "".join(f"{figure:{width}.1f}" for figure, width in zip(figures, widths, strict=True))
        print(f"{program.__name__:22}{cells}", flush=True)
    return 0
