"""Run the short benchmark: ``python -m benchmarks [--json FILE] [--docs FILE] [--quick] [--only WORD]``.

``python -m benchmarks npbench --suite PATH`` runs NPBench instead, ``python -m benchmarks memory --suite
PATH`` measures the memory that its benchmarks take, ``python -m benchmarks kernels`` runs our own kernels
against the machine's bandwidth and at growing sizes, ``python -m benchmarks scaling`` the papers' kernels
on several ranks, ``python -m benchmarks calls`` commonly used calls one by one, ``python -m benchmarks
programs`` short programs of ordinary code, ``python -m benchmarks first`` the first calls of others,
``python -m benchmarks people`` whole programs as people write them, ``python -m benchmarks warmup`` the work
that NPBench's kernels do in a process's first seconds, ``python -m benchmarks plans`` how long plans take,
``python -m benchmarks polybench`` its kernels of linear algebra as statements and as loops, ``python -m
benchmarks gpu`` arrays on a device, ``python -m benchmarks libraries`` libraries that are compiled ahead of
time, and ``python -m benchmarks fusion`` the constants by which fusions decide.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from . import (
    ceiling,
    document,
    first_calls,
    fusion_costs,
    gpu,
    libraries,
    memory,
    mixed,
    npbench,
    ordinary,
    overhead,
    people,
    plans,
    polybench,
    processes,
    roofline,
    scaling,
    speed,
    sweep,
    warmup,
)
from .measure import Row, described, machine


def _line(row: Row) -> str:
    sign = ">=" if row.at_least else "<="
    mark = "ok" if row.holds else "MISSED"
    peers = "".join(f"{name} {value:.2f}x, " for name, value in row.peers.items())
    figure = f"{row.value:9.2f} {row.unit}"
    return f"{row.name:<46}{figure:<32}{sign} {row.limit:<6g}{mark:<8}{peers}{row.detail}"


def main() -> int:
    """Run the benchmarks; return exit status 0, even if a figure misses its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the figures into a section of FILE")
    parser.add_argument("--quick", action="store_true", help="small arrays and few rounds: a smoke test")
    parser.add_argument("--only", metavar="WORD", default="", help="only the groups whose name holds WORD")
    args = parser.parse_args()
    scale, rounds = (0.05, 3) if args.quick else (1.0, 9)
    groups: dict[str, Callable[[], Iterator[Row]]] = {
        # first, before the peers' threads and their many objects are there
        "recording": lambda: overhead.recording(rounds),
        "small calls": lambda: overhead.small_calls(rounds),
        "speed": lambda: speed.rows(speed.cases(scale), rounds),
        "products": lambda: speed.rows(speed.products(scale), rounds),
        "ceiling": lambda: ceiling.rows(scale, rounds),
        "mixed": lambda: mixed.rows(scale, rounds),
        "memory": processes.memory,
        "import": lambda: processes.imports(rounds),
        "first plan": lambda: processes.unplanned(rounds),
        "disk cache": processes.disk_cache,
    }
    if not any(args.only in name for name in groups):
        parser.error(f"no group has {args.only!r} in its name: {', '.join(groups)}")
    tell = document.Telling()
    tell(described(machine()))
    tell("ratios are medians over rounds in which the contenders take turns\n")
    rows: list[Row] = []
    for name, group in groups.items():
        if args.only in name:
            tell(name)
            for row in group():
                rows.append(row)
                tell("  " + _line(row))
    if args.json:
        figures = [{**dataclasses.asdict(row), "holds": row.holds} for row in rows]
        args.json.write_text(json.dumps({"machine": machine(), "rows": figures}, indent=1) + "\n")
    missed = [row.name for row in rows if not row.holds]
    tell(f"\n{len(rows) - len(missed)} of {len(rows)} figures keep their limit")
    if args.docs:
        tell.write(args.docs, "The short benchmark", "`make bench`, or `python -m benchmarks`.")
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "npbench": npbench.main,
    "memory": memory.main,
    "kernels": roofline.main,
    "scaling": scaling.main,
    "calls": sweep.main,
    "programs": ordinary.main,
    "first": first_calls.main,
    "people": people.main,
    "warmup": warmup.main,
    "gpu": gpu.main,
    "libraries": libraries.main,
    "polybench": polybench.main,
    "plans": plans.main,
    "fusion": fusion_costs.main,
}

if __name__ == "__main__":
    command = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.exit(main() if command is None else command(sys.argv[2:]))
