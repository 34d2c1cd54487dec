"""``python -m dcarray export FILE.py:function``: a function as a project for FPGA tools."""

from __future__ import annotations

import argparse
import ast
import sys
from inspect import signature
from pathlib import Path
from typing import Any

from dcarray.core.errors import ProgramError
from dcarray.jit.program.description import python_function
from dcarray.jit.program.function_files import UsageError, function_at

from .export import export

__all__ = ["main"]


def main(argv: list[str]) -> int:
    """Run the command: export a function, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m dcarray export",
        description="Make a folder for the tools of FPGA vendors of a function: kernel, host program, build "
        "files, test bench and data. Arrays have the types of the function's annotations, and random values.",
    )
    parser.add_argument("function", metavar="FILE.py:function")
    parser.add_argument("--target", required=True, choices=("vitis", "intel"), help="whose tools")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder to write")
    parser.add_argument("--board", help="u250 (default), u280, u55c; 520n (default), a10")
    parser.add_argument("--clock", type=int, metavar="MHZ", help="the frequency to ask for")
    parser.add_argument(
        "--width", type=int, metavar="N", help="elements that streams carry at a time at most, a power of 2"
    )
    parser.add_argument("--name", help="what the kernel is called (default: as the function)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="the value of an argument, or of a symbol of annotations; may be given several times",
    )  # fmt: skip
    args = parser.parse_args(argv)
    try:
        function = function_at(args.function)
        sizes, given = _values(function, args.set)
        project = export(
            function, target=args.target, path=args.out, name=args.name, board=args.board, clock=args.clock,
            width=args.width, sizes=sizes, **given,
        )  # fmt: skip
    except (UsageError, ValueError, TypeError, ProgramError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    stages, fifos = len(project.network.stages), sum(len(stage.fifos) for stage in project.network.stages)
    processes = sum(len(stage.processes) for stage in project.network.stages)
    print(f"{project.target} project {args.out}: {stages} stages, {processes} processes, {fifos} FIFOs")
    for number, stage in enumerate(project.network.stages):
        for why in stage.narrow:
            print(f"  stage {number} has streams of {why}")
    for number, array, why in project.network.reasons:
        print(f"  statement {number} has {array} in memory: {why}")
    print(f"next: make -C {args.out} csim; then see {args.out / 'README.md'}")
    return 0


def _values(function: Any, texts: list[str]) -> tuple[dict[str, int], dict[str, Any]]:
    """The values of symbols, and those of arguments."""
    arguments = signature(python_function(function)).parameters
    sizes, given = {}, {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            number = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            number = None
        if not name.isidentifier() or not isinstance(number, bool | int | float | complex):
            raise UsageError(f"--set NAME=NUMBER is expected, not {text!r}")
        if name in arguments:
            given[name] = number
        elif type(number) is int:
            sizes[name] = number
        else:
            raise UsageError(f"{name} is not an argument, and a size is an integer, not {value}")
    return sizes, given
