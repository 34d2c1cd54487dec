"""The ``__import__`` of a process in which NumPy means dcarray in the user's code, whose arrays are
wrapped."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from .numpy_proxy import namespace, patch_array_method

__all__ = ["MACHINERY", "hook_imports"]

MACHINERY = "<frozen importlib._bootstrap>"  # tracebacks and warnings skip its frames by this name


def hook_imports(is_users: Callable[[str], bool]) -> None:
    """Make ``import numpy`` in the user's files import dcarray, and let their classes give NumPy plain
    arrays.

    Parameters
    ----------
    is_users : callable
        ``is_users(file)`` says whether a file is the user's.
    """
    plain, build = builtins.__import__, builtins.__build_class__

    def is_wrapped(names: Any) -> bool:
        file = names.get("__file__")
        return isinstance(file, str) and is_users(file)

    def __import__(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        module = plain(name, globals, locals, fromlist, level)
        if level == 0 and globals is not None and name.startswith("numpy") and is_wrapped(globals):
            return namespace(module)
        return module

    def __build_class__(body: Any, name: str, /, *bases: Any, **kwargs: Any) -> Any:
        cls = build(body, name, *bases, **kwargs)
        return patch_array_method(cls) if is_wrapped(body.__globals__) else cls

    for function in (__import__, __build_class__):
        function.__code__ = function.__code__.replace(co_filename=MACHINERY)
    builtins.__import__, builtins.__build_class__ = __import__, __build_class__
