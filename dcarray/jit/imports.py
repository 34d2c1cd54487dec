"""The ``__import__`` of a process in which code is accelerated: stand-ins for what that code imports."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from .accelerated_code import is_accelerated, is_users
from .library_stand_ins import library_stand_in
from .numpy_proxy import namespace

__all__ = ["MACHINERY", "hook_imports"]

MACHINERY = "<frozen importlib._bootstrap>"  # tracebacks and warnings skip its frames by this name
_installed: list[Any] = []


def hook_imports() -> None:
    """Have imports in accelerated code give stand-ins of libraries, also those inside of functions; in the
    user's files, where all of them are accelerated, NumPy's is dcarray.  A second call does nothing."""
    if _installed:
        return
    plain, standard = builtins.__import__, sys.stdlib_module_names

    def __import__(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        module = plain(name, globals, locals, fromlist, level)
        if globals is None or (not level and name.partition(".")[0] in standard):
            return module
        if not is_accelerated(globals):
            return module
        if name.startswith("numpy") and level == 0:
            return namespace(module) if is_users(globals) else module
        return library_stand_in(module)

    __import__.__code__ = __import__.__code__.replace(co_filename=MACHINERY)
    _installed.append(__import__)
    builtins.__import__ = __import__
