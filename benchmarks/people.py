"""Times whole programs as people write them, in new processes: ``python -m benchmarks people [names]``.

Each of ``benchmarks/scripts`` runs as ``python script.py`` and as ``python -m dcarray run script.py`` with an
empty cache folder (cold), and with ``--cached`` once more with the filled folder.  The processes of a round
run one after the other, in alternating order.  The table has the median of NumPy's seconds, and the
medians over rounds of the ratios within a round.  All outputs must agree with NumPy's.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .document import Arguments, Telling, write_json
from .measure import PAUSE, busy, described, machine, one_core, with_bytecode
from .whole_programs import ACCELERATED, Outcome, difference, run, scripts_named

__all__ = ["SCRIPTS", "Row", "main", "summary"]

SCRIPTS = Path(__file__).with_name("scripts")
SHORT, LONGER = 0.5, 0.06  # seconds: of programs that are short, how much longer they may take
LEAST = 0.95  # times NumPy's speed, of the others


@dataclass
class Row:
    """The measurements of one program, for the ways ``cold`` and perhaps ``cached``."""

    name: str
    numpy: float = 0.0
    ratios: dict[str, float] = field(default_factory=dict)
    longer: dict[str, float] = field(default_factory=dict)
    problem: str = ""

    def slower(self, way: str) -> bool:
        """Whether the program is slower than NumPy by more than the accuracy of the measurement."""
        if self.numpy < SHORT:
            return self.longer[way] > LONGER
        return self.ratios[way] < LEAST


@dataclass
class Measured:
    """The outcomes of one way and of NumPy in one round."""

    numpy: Outcome
    way: Outcome


def _words(way: str) -> tuple[str, ...]:
    return () if way == "numpy" else ACCELERATED


def _turn(script: Path, ways: Sequence[str], turn: int, limit: float) -> dict[str, Measured]:
    """Run one round: NumPy's process before the others or after them."""
    found: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        for way in ("numpy", *ways) if turn % 2 == 0 else (*ways, "numpy"):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                time.sleep(PAUSE)
                found[way] = run(script, _words(way), folder=folder, cache=cache, limit=limit)
    return {way: Measured(found["numpy"], found[way]) for way in ways}


def _problem(found: Mapping[str, Measured]) -> str:
    """Return what is wrong with a round, or ""."""
    for way, both in found.items():
        if both.numpy.problem:
            return f"numpy: {both.numpy.problem}"
        wrong = both.way.problem or difference(both.numpy.output, both.way.output)
        if wrong:
            return f"{way}: {wrong}"
    return ""


def measured(script: Path, ways: Sequence[str], rounds: int, limit: float) -> Row:
    """Run a program for some rounds, or until a round fails; return its row."""
    row = Row(script.stem)
    turns: list[dict[str, Measured]] = []
    for turn in range(rounds):
        turns.append(_turn(script, ways, turn, limit))
        row.problem = _problem(turns[-1])
        if row.problem:
            return row
    row.numpy = statistics.median(both.numpy.seconds for found in turns for both in found.values())
    for way in ways:
        base = [found[way].numpy.seconds for found in turns]
        taken = [found[way].way.seconds for found in turns]
        row.ratios[way] = statistics.median(a / b for a, b in zip(base, taken, strict=True))
        row.longer[way] = statistics.median(b - a for a, b in zip(base, taken, strict=True))
    return row


def summary(rows: Sequence[Row], ways: Sequence[str]) -> Iterator[str]:
    """Yield sentences that summarise all rows."""
    right = [row for row in rows if not row.problem]
    for way in ways if right else ():
        mean = math.exp(statistics.fmean(math.log(row.ratios[way]) for row in right))
        slower = sum(row.slower(way) for row in right)
        least = min(row.ratios[way] for row in right)
        yield (
            f"{way}: geometric mean {mean:.2f}; {slower} of {len(right)} slower (below {LEAST:g}, or where"
            f" NumPy takes under {SHORT:g} s, more than {1e3 * LONGER:g} ms longer); the least {least:.2f}"
        )
    yield f"outputs: {len(right)} of {len(rows)} agree with NumPy's"


def _line(row: Row) -> str:
    if row.problem:
        return f"{row.name:<24}  DIFFERS  {row.problem}"
    cells = "".join(
        f"{row.ratios[way]:>9.2f}{1e3 * row.longer[way]:>+9.0f}{' slower' if row.slower(way) else '':<8}"
        for way in row.ratios
    )
    return f"{row.name:<24}{row.numpy:>8.2f}{cells}".rstrip()


def main(arguments: list[str]) -> int:
    """Print the table; return exit status 1 if an output differs, else 0, even if NumPy is faster."""
    parser = Arguments("people", __doc__)
    parser.add_argument("names", nargs="*", help="only programs whose name holds one of these words")
    parser.add_argument(
        "--cached", action="store_true", help="also a second run, with the cache of the first"
    )
    parser.add_argument("--one-core", action="store_true", help="all processes on one processor")
    parser.add_argument("--busy", action="store_true", help="beside two processes that are busy all the time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--limit", type=float, default=300.0, metavar="SECONDS", help="longest time of a process"
    )
    parser.add_argument("--scripts", type=Path, default=SCRIPTS, metavar="FOLDER", help="other programs")
    args = parser.parse_args(arguments)
    scripts = scripts_named(args.scripts, args.names)
    if not scripts:
        parser.error(f"no program in {args.scripts} has such a name")
    if args.rounds < 1:
        parser.error("--rounds: at least one")
    flags = [flag for flag in ("cached", "one_core", "busy") if getattr(args, flag)]
    command = " ".join(["python -m benchmarks people", *(f"--{f.replace('_', '-')}" for f in flags)])
    ways = ("cold", "cached") if args.cached else ("cold",)
    with_bytecode()
    here = machine()
    tell = Telling()
    tell(described(here))
    tell(f"medians of {args.rounds} rounds: times as fast as NumPy, and milliseconds longer\n")
    tell(f"{'program':<24}{'NumPy, s':>8}" + "".join(f"{way:>9}{'ms':>9}{'':8}" for way in ways).rstrip())
    rows: list[Row] = []
    with busy(2 if args.busy else 0), one_core(args.one_core):
        for script in scripts:
            rows.append(measured(script, ways, args.rounds, args.limit))
            tell(_line(rows[-1]))
    tell("")
    for sentence in summary(rows, ways):
        tell(sentence)
    write_json(args.json, {"machine": here, "command": command, "rows": [asdict(row) for row in rows]})
    tell.write(args.docs, "Programs as people write them", f"`{command}`.")
    return int(any(row.problem for row in rows))
