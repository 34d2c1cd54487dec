"""The distinction of the user's own files from libraries, the standard library and dcarray."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache

from dcarray.core.counters import note
from dcarray.core.own_files import is_inside

__all__ = ["UserFiles", "hidden_modules"]

_AT_START = ("abc", "codecs", "encodings", "genericpath", "io", "ntpath", "os", "posixpath", "site", "stat")
_UNUSED = ("test",)  # which nothing but a program's own tests imports
_OPAQUE = ("site-packages", "dist-packages")
_OF_RANKS = re.compile(r"\s*(?:import|from)\b.*\b(?:dcarray|mpi4py)\b")


class UserFiles:
    """A test whether a file is the user's own.

    Parameters
    ----------
    root : str or None
        The folder of the script, whose modules are the user's in any case.
    """

    def __init__(self, root: str | None) -> None:
        self.root = root
        self.known: dict[str, bool] = {}
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        folders = os.path.dirname(os.__file__), os.path.join(sys.base_exec_prefix, sys.platlibdir, version)
        self.standard = tuple({os.path.realpath(folder) + os.sep for folder in folders})

    def has(self, file: str) -> bool:
        """Whether a file is the user's own."""
        is_own = self.known.get(file)
        if is_own is None:
            is_own = self.known[file] = self._look(os.path.abspath(file))
        return is_own

    def is_divided(self, file: str) -> bool:
        """Whether ranks divide the arrays of a user's file.  One that imports dcarray or mpi4py says itself
        what ranks do, such as that one of them computes a result again, by NumPy."""
        return self.has(file) and not _names_ranks(file)

    def _look(self, path: str) -> bool:
        if is_inside(path):
            return False
        near = self.root is not None and path.startswith(self.root + os.sep)
        remaining = path[len(self.root or "") :] if near else path
        if any(part in _OPAQUE for part in remaining.split(os.sep)):
            return False
        return near or not os.path.realpath(path).startswith(self.standard)


def hidden_modules(first: str) -> list[str]:
    """Return the names of the standard library's modules that a program does not see, since modules of its
    own have these names: in the first entry of ``sys.path``, or those of PYTHONPATH."""
    folders = [] if sys.flags.safe_path else [first]
    if not sys.flags.ignore_environment:
        folders += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    names = sys.stdlib_module_names.difference(sys.builtin_module_names, _AT_START, _UNUSED)
    found: list[str] = []
    for folder in folders:
        files: set[str] = set()
        with suppress(OSError):
            files = {*os.listdir(folder)}
        own = names.intersection([os.path.splitext(file)[0] for file in files])
        found += [
            n for n in own if f"{n}.py" in files or os.path.isfile(os.path.join(folder, n, "__init__.py"))
        ]
    return found


@cache
def _names_ranks(file: str) -> bool:
    import linecache  # which only ranks need

    has_import = any(map(_OF_RANKS.match, linecache.getlines(file)))
    if has_import:
        note("all of a file that imports dcarray or mpi4py, outside of accelerated calls", where=(file, 1))
    return has_import
