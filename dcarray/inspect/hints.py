"""``python -m dcarray hints script.py``: run a script, and write stub files with the types of arguments.

The script runs as under plain ``python``.  Each of the user's files gets a stub file beside it, which lists
its functions with annotations for `dcarray.program`.  Sizes that were equal in all calls have one symbol.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

from dcarray.jit.loops.syntax.stubs import stub_path

from .hint_stubs import stub
from .hint_types import Observed, observed
from .runner import run_as_python_does
from .user_files import UserFiles

__all__ = ["main"]

_NAME = "python -m dcarray hints"
MOST_KINDS = 64  # kinds of calls of a function that are kept
LISTS = 8  # calls of a function in which lists are looked at
_UNUSABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE


class Watch:
    """A profiler that notes the arguments of calls of functions in the user's files."""

    def __init__(self) -> None:
        self._files = UserFiles(None)
        self.seen: dict[CodeType, Observed | None] = {}
        self._begun: dict[FrameType, float] = {}

    def prepare(self, root: str | None) -> None:
        """Set the folder of the script; files in it always count as the user's."""
        self._files = UserFiles(root)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame in self._begun:
            one = self.seen[frame.f_code]
            assert one is not None
            one.seconds += perf_counter() - self._begun.pop(frame)
        if event != "call":
            return
        code = frame.f_code
        entry = self.seen.get(code, self)
        if entry is self:
            named = code.co_name.isidentifier() and code.co_argcount + code.co_kwonlyargcount
            usable = named and not code.co_flags & _UNUSABLE and not code.co_filename.startswith("<")
            mine = usable and self._files.has(code.co_filename)
            entry = self.seen[code] = observed(code, frame.f_globals, frame.f_locals) if mine else None
        if isinstance(entry, Observed):
            entry.calls += 1
            if len(entry.kinds) < MOST_KINDS:
                entry.note(frame.f_locals, entry.calls <= LISTS)
            self._begun[frame] = perf_counter()

    def observed(self) -> list[Observed]:
        """Return the functions that were called, sorted by file and line."""
        called = [one for one in self.seen.values() if one is not None and one.kinds]
        return sorted(called, key=lambda one: (one.code.co_filename, one.code.co_firstlineno))


_DESCRIPTION = """Run a script or a module as plain python does, and write stubs of its functions with
annotations for dcarray.program: the types of the arguments that they were called with.  The stub of script.py
is script.hints.pyi beside it, where python -m dcarray run and compile find it."""


def main(argv: list[str]) -> int:
    """Run a script or a module, and write the stubs; returns the exit status."""
    parser = argparse.ArgumentParser(prog=_NAME, description=_DESCRIPTION)
    parser.add_argument(
        "-o", dest="out", metavar="FILE", help="one file for all functions; -: the standard output"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="a module, as python -m runs it")
    parser.add_argument("target", metavar="script.py", help="the script, or the module's name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    args = parser.parse_args(argv)
    out = (
        args.out if args.out in (None, "-") else str(Path(args.out).absolute())
    )  # a script may change folders
    if out not in (None, "-") and not Path(out).parent.is_dir():
        print(f"{_NAME}: there is no folder for {args.out}", file=sys.stderr)
        return 2
    watch = Watch()
    sys.argv = [args.target, *args.arguments]

    def begin() -> None:
        threading.setprofile(watch)
        sys.setprofile(watch)

    def end() -> int:
        sys.setprofile(None)
        return _write(watch.observed(), out, " ".join([_NAME, *argv]))

    return run_as_python_does(_NAME, args.target, args.module, begin, watch.prepare, end=end)


def _write(seen: Sequence[Observed], out: str | None, command: str) -> int:
    """Write the stubs to the file ``out``, or else one beside each user's file; return the exit status."""
    if out is None:
        files = dict.fromkeys(one.code.co_filename for one in seen)
        texts = {
            stub_path(f): stub([one for one in seen if one.code.co_filename == f], command) for f in files
        }
    else:
        texts = {out: stub(seen, command)}
    if not any(texts.values()):
        print(f"{_NAME}: no call of a function with arrays or numbers was seen", file=sys.stderr)
    status = 0
    for path, text in texts.items():
        if text and path == "-":
            print(text, end="")
        elif text:
            try:
                Path(path).write_text(text, encoding="utf-8")
                print(f"stub: {path}", file=sys.stderr)
            except OSError as error:
                print(f"{_NAME}: {error}; use -o FILE", file=sys.stderr)
                status = 1
    return status
