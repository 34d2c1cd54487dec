"""``python -m dcarray compile``: functions of a file as a shared library for C, with header and loader."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType

from dcarray.core.errors import ProgramError

from .description import python_function
from .function_files import UsageError, function_at

__all__ = ["compile_library", "main"]

_DESCRIPTION = """Compile functions with types by annotation to a shared library, libNAME.so, which needs
neither Python nor NumPy.  NAME.h has its functions for C, NAME.py for Python."""


def main(argv: Sequence[str]) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dcarray compile", description=_DESCRIPTION)
    parser.add_argument("functions", nargs="+", metavar="FILE.py:FUNCTION", help="what is compiled")
    parser.add_argument("-o", dest="out", type=Path, default=Path(), metavar="DIR", help="where it goes")
    parser.add_argument("--stem", metavar="NAME", help="of the files (default: the first function's)")
    parser.add_argument("--emit", choices=("library", "c"), default="library",
                        help="c: the C source NAME.c in place of the library")  # fmt: skip
    parser.add_argument("--cpu", default="native", metavar="LEVEL",
                        help="native, x86-64, x86-64-v2, x86-64-v3 or x86-64-v4")  # fmt: skip
    parser.add_argument("--blas", default="", metavar="NAME",
                        help="the CBLAS for products: a name as for -l, or a path")  # fmt: skip
    args = parser.parse_args(list(argv))
    try:
        functions = [*map(_python_function_at, args.functions)]
        paths = compile_library(functions, args.out, args.stem, args.emit, args.cpu, args.blas)
    except (ProgramError, UsageError, OSError, ValueError) as error:
        print(f"python -m dcarray compile: {error}", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    if args.emit == "c":
        from dcarray.lowering.aot.build import command_text

        stem = paths[0].stem
        print(f"build it with: {command_text(str(paths[0]), f'lib{stem}.so', args.cpu, args.blas)}")
    return 0


def _python_function_at(place: str) -> FunctionType:
    """The function at a place."""
    try:
        return python_function(function_at(place))
    except TypeError:
        raise UsageError(f"{place} is not a Python function") from None


def compile_library(
    functions: Sequence[FunctionType],
    out: Path,
    stem: str | None = None,
    emit: str = "library",
    cpu: str = "native",
    blas: str = "",
    extra: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Compile functions to a shared library.

    Parameters
    ----------
    functions : sequence of function
        The functions, with types by annotation as for `dcarray.program`.
    out : Path
        The folder for the files; it is made if it is missing.
    stem : str, optional
        The name of the files, an identifier; that of the first function if there is none.
    emit : str, optional
        "library", or "c": the C source instead.
    cpu : str, optional
        The processor: "native" or a level of x86-64.
    blas : str, optional
        The CBLAS for products: a name as for the linker's ``-l``, or a path.
    extra : sequence of str, optional
        More options for the C compiler; then all kernels are compiled by it.

    Returns
    -------
    tuple of Path
        The library or the source, the header, and the loader.

    Raises
    ------
    ProgramError
        If a function does not compile, with file and line.
    OSError
        If a file cannot be written.
    ValueError
        If the stem or the processor is none, or names are used twice.
    """
    from dcarray.lowering.aot import build
    from dcarray.lowering.aot.interface import Refused
    from dcarray.lowering.aot.library import sources
    from dcarray.lowering.aot.objects import Objects

    from .ahead_of_time import library_function, located

    if cpu != "native" and cpu not in build.LEVELS:
        raise ValueError(f"unknown processor {cpu!r}: it is native, {', '.join(build.LEVELS)}")
    names = [function.__name__ for function in functions]
    if len(set(names)) < len(names):
        raise ValueError(f"two functions have one name: {', '.join(names)}")
    compiled = [library_function(function) for function in functions]
    stem = names[0] if stem is None else stem
    if not stem.isidentifier() or not stem.isascii() or stem.startswith("_"):
        raise ValueError(f"the stem {stem!r} is not an identifier in C")
    try:
        objects = None if emit == "c" or extra else Objects(cpu)
        texts = sources(compiled, stem, cpu == "native", bool(blas), objects.takes if objects else None)
    except Refused as error:
        raise located(error, functions[names.index(error.function)]) from error
    out.mkdir(parents=True, exist_ok=True)
    first = out / (f"{stem}.c" if emit == "c" else f"lib{stem}.so")
    if emit == "c":
        first.write_text(texts.c, encoding="utf-8")
    else:
        try:
            build.build(texts, first, cpu, blas, objects.code if objects else (), extra)
        except Refused as error:
            raise located(error, functions[0]) from error
    header, loader = out / f"{stem}.h", out / f"{stem}.py"
    header.write_text(texts.header, encoding="utf-8")
    loader.write_text(texts.loader, encoding="utf-8")
    return first, header, loader
