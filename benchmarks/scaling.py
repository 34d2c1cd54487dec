"""Runs the papers' kernels on several ranks: ``python -m benchmarks scaling``.

Measured: weak scaling on the ranks that fit this machine, one thread each, with NumPy.  Counted:
messages and bytes of one rank of up to 1,296, planned without data.  Modelled: times on a machine with given
latency, bandwidth and speed, and the error of the model where times are measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dcarray import comm

from . import scaling_model
from .document import write_section
from .measure import cores, machine
from .papers import PROGRAMS, Program, Sizes
from .ranks import Job, wrong
from .scaling_report import section

RANKS = (1, 2, 4, 8, 16, 36, 64, 128, 256, 512, 1024, 1296)
_SIZES = [8 << k for k in range(20)]


def _job(contender: str, ranks: int, program: Program) -> Job:
    env = {"DCARRAY_DISTRIBUTE_ABOVE": str(program.above), "DCARRAY_JIT": "eager"}
    return Job(contender, ranks, sys.executable, ranks > 1, env)


class Measured:
    """The measurement of one program with several contenders, whose jobs run alternately."""

    def __init__(self, program: Program, args: argparse.Namespace, steps: int | None) -> None:
        self.program, self.args, self.steps = program, args, steps
        self.jobs: dict[str, list[Job]] = {}
        self.calls: dict[str, int] = {}  # in a turn
        self.told: dict[str, dict[str, Any]] = {}

    def sizes(self, ranks: int) -> Sizes:
        """Return the sizes for a number of ranks: those of Table 2, divided by the option ``shrink``."""
        base = {
            name: n if name == "T" else max(4, round(n / self.args.shrink))
            for name, n in self.program.smaller.items()
        }
        if self.steps is not None:
            base["T"] = self.steps
        return self.program.at(ranks, base)

    def add(self, contender: str, ranks: int, together: int, folder: str) -> None:
        """Start ``together`` equal jobs of a contender, check their results, and warm them up."""
        name = f"{contender} x{together}" if together > 1 else f"{contender} {ranks}"
        told: dict[str, Any] = {"contender": contender, "ranks": ranks, "together": together, "times": []}
        self.told[name] = told
        jobs = self.jobs[name] = [_job(contender, ranks, self.program) for _ in range(together)]
        reference = os.path.join(folder, str(ranks))
        check = "write" if not os.path.exists(reference) else "check"
        os.makedirs(reference, exist_ok=True)
        for number, job in enumerate(jobs):
            for action, *arguments in (
                ("bind", number * ranks, together * ranks),
                ("load", self.program.name, self.sizes(ranks)),
                (check, reference),
                ("warm", self.args.warm),
            ):
                answers = job.ask(action, *arguments, limit=self.args.limit)
                if (said := wrong(answers)) is not None:
                    told["wrong"] = said
                    self.stop(name)
                    return
                told.update({k: v for k, v in answers[0].items() if k in ("error", "settled")})
                if action == "warm":
                    self.calls[name] = max(1, min(50, int(self.args.turn / answers[0]["seconds"])))

    def stop(self, name: str) -> None:
        """End a contender's jobs."""
        for job in self.jobs.pop(name):
            job.close()

    def turn(self, name: str) -> None:
        """Run calls in all jobs of a contender at once; add the median of the slowest ranks' times."""
        for job in self.jobs[name]:
            job.tell("run", self.calls.get(name, 1))
        answers = [answer for job in self.jobs[name] for answer in job.hear(self.args.limit)]
        if (said := wrong(answers)) is not None:
            self.told[name]["wrong"] = said
            self.stop(name)
            return
        slowest = map(max, zip(*(answer["times"] for answer in answers), strict=True))
        self.told[name]["times"].append(statistics.median(slowest))
        if answers[0]["counts"]:
            most = max(answers, key=lambda answer: answer["counts"]["bytes_received"])
            self.told[name]["counts"] = most["counts"]

    def run(self, wanted: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
        """Measure contenders, each a name, number of ranks, and number of equal jobs; return the results."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                for ranks in dict.fromkeys(ranks for _, ranks, _ in wanted):
                    self._reference(ranks, folder)
                for contender in wanted:
                    self.add(*contender, folder)
                for _ in range(self.args.rounds):
                    for name in list(self.jobs):
                        self.turn(name)
            finally:
                for name in list(self.jobs):
                    self.stop(name)
        for told in self.told.values():
            if told["times"]:
                told["seconds"] = statistics.median(told["times"])
        ranks_ = dict.fromkeys(ranks for _, ranks, _ in wanted)
        return {"sizes": {ranks: self.sizes(ranks) for ranks in ranks_}, "contenders": self.told}

    def _reference(self, ranks: int, folder: str) -> None:
        """Save NumPy's results at the sizes for a number of ranks."""
        reference = os.path.join(folder, str(ranks))
        os.makedirs(reference)
        with _job("numpy", 1, self.program) as job:
            for action, *arguments in (("load", self.program.name, self.sizes(ranks)), ("write", reference)):
                if (said := wrong(job.ask(action, *arguments, limit=self.args.limit))) is not None:
                    raise RuntimeError(f"NumPy's {self.program.name}: {said}")


def measure(program: Program, args: argparse.Namespace) -> dict[str, Any]:
    """Return the weak scaling of one program."""
    counts = [ranks for ranks in args.ranks if ranks <= args.most]
    fitting = max(ranks for ranks in counts if ranks <= cores() or ranks == min(counts))
    own = [("numpy", 1, 1), *(("dcarray", ranks, 1) for ranks in counts)]
    if fitting > 1:
        own.append(("dcarray", 1, fitting))
    steps = program.smaller.get("T")
    return {"scaling": Measured(program, args, steps and min(steps, args.steps)).run(own)}


def probe(args: argparse.Namespace) -> tuple[comm.Machine, dict[str, Any]]:
    """Measure this machine for the model: a ping-pong between two ranks, and rates of two ranks at once."""
    told: dict[str, Any] = {}
    with _job("dcarray", 2, PROGRAMS[0]) as job:
        for name, arguments in (("bind", (0, 2)), ("messages", (_SIZES, 50)), ("rates", (64, 5))):
            answers = job.ask(name, *arguments, limit=args.limit)
            if (said := wrong(answers)) is not None:
                raise RuntimeError(f"the ping-pong failed: {said}")
            least = {key: min(a[key] for a in answers) for key in answers[0] if key != "points"}
            told |= {**answers[0], **least}
    points = [(float(n), float(seconds)) for n, seconds in told["points"]]
    gap = max(0.0, (told["burst"] - points[0][1]) / 8)
    link = comm.fit(points, gap)
    told |= {"link": dataclasses.asdict(link), "errors": [link.time(n) / t - 1 for n, t in points]}
    here = comm.Machine("here", link, told["flops"], told["memory"], told["cache"], 1 << 20)
    return here, told


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scaling", description=__doc__)
    names = ", ".join(program.name for program in PROGRAMS)
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of {names}")
    parser.add_argument("--ranks", default="1,2", metavar="P,...",
                        help="to measure; more than cores are marked (%(default)s)")  # fmt: skip
    parser.add_argument("--shrink", type=float, default=1.0, metavar="F",
                        help="measure with the sizes that Table 2 has for Dask, divided by F")  # fmt: skip
    parser.add_argument("--steps", type=int, default=1000, metavar="T", help="of the stencils (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, metavar="K",
                        help="turns; 0: only count and model")  # fmt: skip
    parser.add_argument("--turn", type=float, default=0.3, metavar="SECONDS",
                        help="length of a turn, at least one call (%(default)s)")  # fmt: skip
    parser.add_argument("--warm", type=float, default=2.0, metavar="SECONDS",
                        help="how long a call may be to be called often before the clock runs")  # fmt: skip
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="longest answer")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE",
                        help="what --json wrote, instead of measuring")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the section of this document")
    args = parser.parse_args(argv)
    args.ranks = sorted({1, *(int(word) for word in args.ranks.split(","))})
    args.most = max(args.ranks)
    wanted = [name for name in args.only.split(",") if name]
    args.programs = [p for p in PROGRAMS if not wanted or p.name in wanted]
    if not args.programs:
        parser.error(f"there are {names}")
    return args


def _run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure, count and model all programs, and return the results."""
    told: dict[str, Any] = {"machine": machine(), "rounds": args.rounds, "shrink": args.shrink}
    told |= {"programs": {}, "counts": {}, "daint": dataclasses.asdict(scaling_model.DAINT)}
    if args.rounds:
        here, told["probe"] = probe(args)
        print(_describe(here.link))
        for program in args.programs:
            found = measure(program, args)
            found["model"] = scaling_model.checked(program, found["scaling"], here)
            told["programs"][program.name] = found
            print(f"{program.name} is measured", flush=True)
    for program in args.programs:
        told["counts"][program.name] = scaling_model.counted(program, RANKS, scaling_model.DAINT)
        print(f"{program.name} is counted", flush=True)
    return told


def _describe(link: comm.Link) -> str:
    lines = ", ".join(
        f"{line.latency * 1e6:.1f} us + n / {line.bandwidth / 1e9:.1f} GB/s up to {line.limit:,.0f} bytes"
        for line in link.lines
    )
    return f"messages between two ranks here: {lines}; {link.gap * 1e6:.1f} us each further one"


def main(words: Sequence[str]) -> int:
    """Measure, count and model how the papers' kernels scale."""
    args = _arguments(words)
    told = json.loads(args.source.read_text()) if args.source else _run(args)
    if args.json:
        args.json.write_text(json.dumps(told, indent=1) + "\n")
    print(section(told))
    write_section(args.docs, "Scaling", section(told))
    return 0
