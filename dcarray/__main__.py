"""The command line: ``python -m dcarray {cache,compile,demo,doctor,export,hints,info,run}``."""

from __future__ import annotations

import os
import sys
from importlib import import_module

_MODULES = {
    "cache": "inspect.cache_command",
    "compile": "jit.program.compile_command",
    "doctor": "inspect.doctor.command",
    "export": "fpga.export_command",
    "hints": "inspect.hints",
    "run": "inspect.runner",
}
"""Subcommands with a parser of their own: the module whose ``main`` each is."""


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in _MODULES:  # all further arguments are theirs
        module = import_module(f"dcarray.{_MODULES[argv[0]]}")
        status: int = module.main(argv[1:])
        return status
    import argparse
    from pathlib import Path

    from dcarray.core.device_names import resolve

    parser = argparse.ArgumentParser(prog="python -m dcarray", description="Ordinary NumPy code, fused.")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="{cache,compile,demo,doctor,export,hints,info,run}"
    )
    demo = commands.add_parser("demo", help="terrain analysis with plain and with wrapped arrays")
    demo.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default: out)")
    demo.add_argument("--factor", type=int, default=8, help="refinement of the large grid (default: 8)")
    demo.add_argument("--device", default="cpu", help="where the wrapped arrays are (default: cpu)")
    demo.add_argument("--rounds", type=int, default=5, help="timed rounds (default: 5)")
    commands.add_parser("cache", add_help=False, help="compiled code, to travel in a file")
    commands.add_parser("doctor", add_help=False, help="where the time of a script goes, and what to do")
    commands.add_parser("export", add_help=False, help="a function as a project for FPGA tools")
    commands.add_parser("hints", add_help=False, help="annotations for functions, from a run of a script")
    commands.add_parser("info", help="versions, device, options: the text to put into a bug report")
    commands.add_parser("run", add_help=False, help="an unmodified script or module, its NumPy being dcarray")
    commands.add_parser("compile", add_help=False, help="functions of a file as a shared library for C")
    args = parser.parse_args(argv)
    if args.command == "info":
        from dcarray.inspect.about import info

        print(info())
        return 0
    if args.factor < 1 or args.rounds < 1:
        parser.error("--factor and --rounds must be at least 1")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("the demo needs matplotlib: pip install 'dcarray[demo]'", file=sys.stderr)
        return 2
    try:
        device = resolve(args.device)
    except ValueError as error:
        parser.error(str(error))
    from .demo import run

    return run(args.out, args.factor, args.rounds, device)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        if not sys.flags.safe_path:  # what is imported here is not the program's
            try:
                os.getcwd()
                sys.path[0] = sys.path[-1]
            except OSError:  # the working folder is deleted, and so not in the path
                sys.path.insert(0, sys.path[-1])
        sys.exit(main())
    from dcarray.core.pipes import quietly

    sys.exit(quietly(main))
