"""``python -m dcarray doctor script.py``: reports where the time of a program goes, and what dcarray would
gain."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from .diagnosis import Line, diagnosis
from .page import page
from .runs import Program, Run, watch
from .text import text
from .ways import WAYS, Gain, gains

__all__ = ["main"]

_NAME = "python -m dcarray doctor"
_DESCRIPTION = """Run a script or module as plain python does, say on the standard error where its time went,
and what python -m dcarray run gains: that is a second run of it, in a process of its own."""
_COMPARED = {"none": [], "run": ["run"], "all": [*WAYS]}


def main(argv: list[str]) -> int:
    """Run a program, print what was seen, and return the program's exit status."""
    parser = argparse.ArgumentParser(prog=_NAME, description=_DESCRIPTION)
    parser.add_argument(
        "--compare", choices=[*_COMPARED], default="run",
        help="the ways of using dcarray that are measured, each by one more run (default: run)",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    parser.add_argument("--html", metavar="FILE", help="write the source coloured by time, as one page")
    parser.add_argument("-m", dest="module", action="store_true", help="a module, as python -m runs it")
    parser.add_argument("target", metavar="script.py", help="the script, or the module's name; - for input")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    args = parser.parse_args(argv)
    outputs = [os.path.abspath(name) for name in (args.json, args.html) if name]
    if missing := [name for name in outputs if not os.path.isdir(os.path.dirname(name))]:
        parser.error(f"there is no folder for {missing[0]}")
    if args.module or args.target != "-":
        return _examined(Program(args.module, False, [args.target, *args.arguments]), args)
    with tempfile.TemporaryDirectory(prefix="dcarray-doctor-") as folder:
        script = Path(folder, "stdin.py")  # each run reads it, and so does what looks for the source of lines
        script.write_bytes(sys.stdin.buffer.read())
        return _examined(Program(False, True, [str(script), *args.arguments]), args)


def _examined(program: Program, args: argparse.Namespace) -> int:
    """Do what `main` does with a program."""
    plain = watch("plain", program)
    status = plain.status if plain.status >= 0 else 128 - plain.status
    if not plain.seconds:
        print(f"{_NAME}: the program ended before it could be seen", file=sys.stderr)
        return status
    measured = gains(program, plain, _COMPARED[args.compare])
    fast = next((one.run for one in measured if one.way == "run"), None)
    lines = diagnosis(plain, fast)
    print(text(plain, measured, lines), file=sys.stderr)
    try:
        if args.json:
            Path(args.json).write_text(json.dumps(told(plain, measured, lines), indent=1), "utf-8")
        if args.html:
            Path(args.html).write_text(page(plain, measured, lines), "utf-8")
    except OSError as error:
        print(f"{_NAME}: {error}", file=sys.stderr)
        return status or 1
    return status


def told(plain: Run, measured: list[Gain], lines: list[Line]) -> dict[str, Any]:
    """Return all measurements and advice as values for JSON."""
    rows = [dataclasses.asdict(one) for one in lines]  # type: ignore[call-overload,unused-ignore]
    ways = [
        {
            "way": one.way, "name": one.name, "why": one.why, "seconds": one.run and one.run.seconds,
            "compiled": one.run and one.run.compiled, "known": one.run and one.run.known,
            "hot": one.run.hot if one.run else [],
        }
        for one in measured
    ]  # fmt: skip
    return {
        "seconds": plain.seconds, "outside": plain.outside, "status": plain.status, "ways": ways,
        "lines": rows,
        "all": [[*where, seconds] for where, seconds in sorted(plain.lines.items())],
    }  # fmt: skip
