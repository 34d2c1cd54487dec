"""Runs programs of other projects as whole processes: ``python -m conformance.scripts --path FOLDER``.

The path is a folder with programs, outside of the project: a checkout, for example.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import os
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from .processes import Command, judge

__all__ = ["commands", "main"]

_GAME = {
    "binarytrees": "10", "chameneosredux": "600", "fannkuchredux": "8", "fasta": "2000", "fastaredux": "2000",
    "knucleotide": "", "mandelbrot": "120", "meteor": "200", "nbody": "20000", "pidigits": "300",
    "regexdna": "", "regexredux": "", "revcomp": "", "spectralnorm": "90", "threadring": "1000",
    "coro-prime-sieve": "200", "edigits": "2000", "helloworld": "you", "lru": "100 1000", "nsieve": "4",
    "nqueens": "8", "merkletrees": "8", "mandelbulb": "10",
}  # fmt: skip
"""The Computer Language Benchmarks Game: sizes that take about a second; programs without one read a file."""
_KINDS = ("program", "doctest", "unittest", "game")


def commands(options: argparse.Namespace) -> Iterator[Command]:
    """Return the programs of a folder; examples in docstrings are one program for each folder of files."""
    root = options.path.resolve()
    paths = {"PYTHONPATH": os.pathsep.join([str(root), str(Path(__file__).parents[1])])}
    files = sorted(one for one in root.rglob("*") if one.suffix in (".py", ".python3"))
    if options.kind == "doctest":
        with_examples = [one for one in files if ">>> " in one.read_text(errors="replace")]
        for folder, those in groupby(with_examples, lambda one: one.parent):
            top = next(one for one in (folder, *folder.parents) if not (one / "__init__.py").exists())
            modules = [".".join(one.relative_to(top).with_suffix("").parts) for one in those]
            words = ("-m", "conformance.scripts", "--examples", *modules)
            yield Command(str(folder.relative_to(root)), words, top, variables=paths)
        return
    for file in files:
        name = str(file.relative_to(root))
        if options.kind == "game":
            if (size := _GAME.get(file.parent.name)) is not None:
                given = (*size.split(),) if size else ()
                yield Command(name, (str(file), *given), root, None if given else options.input)
        elif options.kind == "unittest":
            if file.name.startswith("test_"):
                module = name.removesuffix(".py").replace("/", ".")
                yield Command(name, ("-m", "unittest", module), root, variables=paths)
        else:
            yield Command(name, (name,), root, variables=paths)


def _run_examples(modules: list[str]) -> None:
    """Run the examples in the docstrings of modules, and print how many fail."""
    for name in modules:
        try:
            with contextlib.redirect_stdout(None):  # what it prints as it is imported may be times
                module = importlib.import_module(name)
        except BaseException as error:
            print(name, type(error).__name__, error)
            continue
        print(name, doctest.testmod(module), flush=True)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--path", type=Path, required=True, help="the folder")
    parser.add_argument("--kind", choices=_KINDS, default="program", help="what the files are")
    parser.add_argument("--input", type=Path, help="the file that programs of the game read")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--examples"]:
        _run_examples(given[1:])
        return 0
    return judge(
        "conformance.scripts",
        "Programs of other projects",
        "Programs of a checkout as whole processes, as they are and under `python -m dcarray run`.",
        commands, _options, given,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
