"""The process that the doctor watches: it runs the program in one way, and reports its measurements at the
end."""

from __future__ import annotations

import ast
import atexit
import json
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from dcarray.inspect import runner
from dcarray.inspect.user_files import UserFiles

from .clock import Clock

__all__ = ["main"]

_NAME = "python -m dcarray doctor"


def main(argv: list[str]) -> int:
    """Run a program for `dcarray.inspect.doctor.runs`, and return its exit status.

    Parameters
    ----------
    argv : list of str
        The path of the file that says how to run the program and receives the measurements; the script or
        module; its arguments.
    """
    notes, *program = argv
    with open(notes, encoding="utf-8") as file:
        way, module, stdin, functions = json.load(file)
    os.unlink(notes)
    root = None if module else os.getcwd() if stdin else os.path.dirname(os.path.abspath(program[0]))
    files = UserFiles(root)
    clock, owner = (
        Clock(lambda file: not file.startswith("<") and files.has(file), way == "plain"),
        os.getpid(),
    )

    def write() -> None:
        if os.getpid() != owner:  # not what is forked from it
            return
        told = clock.end()
        if way != "plain":
            from dcarray.core.counters import counters
            from dcarray.inspect.hot_lines import hot_lines

            told["hot"] = [list(one) for one in hot_lines()]
            told["compiled"], told["known"] = counters.compiles, counters.cache_hits + counters.disk_hits
        with open(notes, "w", encoding="utf-8") as file:
            json.dump(told, file)

    def begin() -> None:
        if stdin:  # as Python does for a program without a file
            sys.argv[0] = "-"
            if not sys.flags.safe_path:
                sys.path[0] = ""
            sys.modules["__main__"].__file__ = "<stdin>"
        if way == "plain":
            clock.begin()

    atexit.register(write)
    sys.argv = program
    if way != "plain":  # what dcarray does with the source before it runs is part of the way
        clock.begin()
    how = _ways[way](files, functions)
    return runner.run_as_python_does(_NAME, program[0], module, begin, *how)


# ---- the ways ----------------------------------------------------------------------------------------
Way = tuple[Callable[[str | None], None], runner.Compiler]
"""What is done before anything of the program is looked for, and how its sources are compiled."""


def _plain(files: UserFiles, functions: list[tuple[str, int]]) -> Way:
    return lambda root: None, runner.plain


def _floor(files: UserFiles, functions: list[tuple[str, int]]) -> Way:
    """Prepare to put the floor under NumPy, and compile nothing."""
    from dcarray.core import floor

    return lambda root: floor.install(), runner.plain


def _run(files: UserFiles, functions: list[tuple[str, int]]) -> Way:
    accelerator = runner.Accelerator((), eagerly=False)
    return accelerator.prepare, accelerator.compile


def _accelerate(files: UserFiles, functions: list[tuple[str, int]]) -> Way:
    """Prepare to decorate some functions, given by file and line, with `dcarray.accelerate`."""
    loaders: Any = SourceFileLoader  # which is changed
    load = loaders.get_code

    def compiled(source: str | bytes, file: str, names: Any = None) -> CodeType:
        lines = {line for name, line in functions if name == file}
        return compile(decorated(source, lines), file, "exec", dont_inherit=True)

    def get_code(loader: Any, name: str) -> CodeType | None:
        if any(file == loader.path for file, _ in functions):
            return compiled(loader.get_data(loader.path), loader.path)
        code: CodeType | None = load(loader, name)
        return code

    def prepare(root: str | None) -> None:
        loaders.get_code = get_code

    return prepare, compiled


def _asarray(files: UserFiles, functions: list[tuple[str, int]]) -> Way:
    """Prepare to give the program dcarray where it imports NumPy."""
    from dcarray.jit.imports import hook_imports

    return lambda root: hook_imports(files.has), runner.plain


_ways = {
    "plain": _plain, "floor": _floor, "run": _run, "accelerate": _accelerate, "asarray": _asarray,
}  # fmt: skip


def decorated(source: str | bytes, lines: set[int]) -> ast.Module:
    """Return the syntax tree of a source whose functions at some lines are decorated.  Theirs is the
    innermost decorator, so that the others get its result."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno in lines:
            decorator = ast.parse("__import__('dcarray').accelerate", mode="eval").body
            for part in ast.walk(decorator):
                ast.copy_location(part, node)
            node.decorator_list.append(decorator)
    return tree


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
