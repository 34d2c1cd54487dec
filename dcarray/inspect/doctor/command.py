"""``python -m dcarray doctor script.py``: where the time of a program goes, and what dcarray would gain."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

from .clock import Run, watch
from .diagnosis import Line, bandwidth, diagnosis
from .page import page

__all__ = ["main"]

_NAME = "python -m dcarray doctor"
_DESCRIPTION = """Run a script or module as plain python does, say on the standard error where its time went,
and what python -m dcarray run gains: that is a second run of it, in a process of its own."""


def main(argv: list[str]) -> int:
    """Run a program, print what was seen, and return the program's exit status."""
    parser = argparse.ArgumentParser(prog=_NAME, description=_DESCRIPTION)
    parser.add_argument("--no-compare", action="store_true", help="no second run, under dcarray")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    parser.add_argument("--html", metavar="FILE", help="write the source coloured by time, as one page")
    parser.add_argument("-m", dest="module", action="store_true", help="a module, as python -m runs it")
    parser.add_argument("target", metavar="script.py", help="the script, or the module's name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    args = parser.parse_args(argv)
    outputs = [os.path.abspath(name) for name in (args.json, args.html) if name]
    if missing := [name for name in outputs if not os.path.isdir(os.path.dirname(name))]:
        parser.error(f"there is no folder for {missing[0]}")
    program = [args.target, *args.arguments]
    plain = watch("plain", args.module, program)
    if not plain.seconds:
        print(f"{_NAME}: the program ended before it could be seen", file=sys.stderr)
        return _status(plain)
    fast, note = None, "not compared: --no-compare was given"
    if not args.no_compare:
        fast, note = _compared(args.module, program, plain)
    most = bandwidth()
    lines = diagnosis(plain, fast, most)
    print(_text(plain, fast, note, lines, most), file=sys.stderr)
    try:
        if args.json:
            Path(args.json).write_text(json.dumps(told(plain, fast, note, lines, most), indent=1), "utf-8")
        if args.html:
            Path(args.html).write_text(page(plain, note, lines), "utf-8")
    except OSError as error:
        print(f"{_NAME}: {error}", file=sys.stderr)
        return _status(plain) or 1
    return _status(plain)


def _status(run: Run) -> int:
    return run.status if run.status >= 0 else 128 - run.status


def _compared(module: bool, program: list[str], plain: Run) -> tuple[Run | None, str]:
    """Run a program under dcarray; returns that run, or why there is none to compare with."""
    try:
        os.lseek(0, 0, os.SEEK_SET)  # input from a file is read again
    except OSError:
        if not sys.stdin.isatty():
            return None, "not compared: the input cannot be read twice (give it as a file: < FILE)"
    fast = watch("run", module, program, quiet=True)
    if fast.status != plain.status:
        return None, f"not compared: under python -m dcarray run its exit status is {fast.status}"
    if not fast.seconds:
        return None, "not compared: the second run ended before it could be seen"
    times = plain.seconds / fast.seconds
    return fast, f"python -m dcarray run: {fast.seconds:.3f} s, {times:.2f} times as fast"


def told(plain: Run, fast: Run | None, note: str, lines: list[Line], most: float) -> dict[str, Any]:
    """Return all figures, as JSON has them."""
    rows = []
    for one in lines:
        row = dataclasses.asdict(one)  # type: ignore[call-overload,unused-ignore]
        row["traffic"] = one.traffic and one.traffic._asdict()
        rows.append(row)
    return {
        "seconds": plain.seconds, "outside": plain.outside, "status": plain.status, "note": note,
        "accelerated": fast and fast.seconds, "bandwidth": most, "lines": rows,
        "hot": fast.hot if fast else [],
        "all": [[*where, seconds] for where, seconds in sorted(plain.lines.items())],
    }  # fmt: skip


def _text(plain: Run, fast: Run | None, note: str, lines: list[Line], most: float) -> str:
    rows = [
        f"dcarray doctor: {plain.seconds:.3f} s as plain Python; {note}",
        f"memory: {most / 1e9:.1f} GB/s, a copy by all threads",
        "",
        f"{'seconds':>9} {'share':>6} {'each':>9} {'MB moved':>9} {'needed':>7} {'of memory':>9}  line",
    ]
    for one in lines:
        moved = f"{one.traffic.moved / 1e6:9.3g} {one.traffic.needed / 1e6:7.3g}" if one.traffic else " " * 17
        rate = "" if one.rate is None else f"{one.rate:.0%}"
        place = f"{os.path.basename(one.file)}:{one.line}"
        rows.append(
            f"{one.seconds:9.3f} {one.share:6.1%} {shown(one.each):>9} {moved} {rate:>9}  {place}  {one.text}"
        )
        said = [one.library and f"in {one.library}", one.how and f"under run: {one.how}", one.advice]
        rows += [f"{'':55}  {part}" for part in said if part]
    for file, line, last, seconds, how, _ in fast.hot if fast else ():
        known = any(one.file == file and line <= one.line <= last for one in lines)
        if how.startswith("compiled") and not known and seconds > 0.01 * plain.seconds:
            rows.append(f"{'':16} under run {os.path.basename(file)}:{line} was {how}: {seconds:.3f} s")
    rest = plain.seconds - sum(one.seconds for one in lines)
    rows.append(f"{rest:9.3f} {rest / plain.seconds:6.1%}  {'':36} all else")
    return "\n".join(rows)


def shown(seconds: float | None) -> str:
    """Return a time in a unit that suits it; empty if it is not known."""
    if seconds is None:
        return ""
    scale, unit = next(
        (s, u) for s, u in ((1, "s"), (1e3, "ms"), (1e6, "us")) if seconds * s >= 1 or u == "us"
    )
    return f"{seconds * scale:.3g} {unit}"
