"""Run the short benchmark: ``python -m benchmarks [--json FILE] [--docs FILE] [--quick] [--only WORD]``.

``python -m benchmarks NAME`` runs another one, of those in `COMMANDS`; ``--help`` after it says what it does.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

from . import document, overhead, processes, speed
from .measure import Row, described, machine


def _line(row: Row) -> str:
    sign = ">=" if row.at_least else "<="
    mark = "ok" if row.holds else "MISSED"
    figure = f"{row.value:9.2f} {row.unit}"
    return f"{row.name:<46}{figure:<32}{sign} {row.limit:<6g}{mark:<8}{row.detail}"


def main() -> int:
    """Run the benchmarks; return exit status 0, even if a figure misses its limit."""
    parser = document.Arguments("", main.__doc__, "groups")
    parser.add_argument("--quick", action="store_true", help="small arrays and few rounds: a smoke test")
    args = parser.parse_args()
    scale, rounds = (0.05, 3) if args.quick else (1.0, 9)
    groups: dict[str, Callable[[], Iterator[Row]]] = {
        "recording": lambda: overhead.recording(rounds),
        "small calls": lambda: overhead.small_calls(rounds),
        "speed": lambda: speed.rows(speed.cases(scale), rounds),
        "products": lambda: speed.rows(speed.products(scale), rounds),
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
    figures = [{**dataclasses.asdict(row), "holds": row.holds} for row in rows]
    document.write_json(args.json, {"machine": machine(), "rows": figures})
    missed = [row.name for row in rows if not row.holds]
    tell(f"\n{len(rows) - len(missed)} of {len(rows)} figures keep their limit")
    tell.write(args.docs, "The short benchmark", "`make bench`, or `python -m benchmarks`.")
    return 0


COMMANDS = "ablation", "gpu", "npbench", "people", "polybench", "scaling", "warmup"

if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in COMMANDS else None
    sys.exit(import_module(f".{command}", "benchmarks").main(sys.argv[2:]) if command else main())
