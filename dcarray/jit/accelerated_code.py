"""Which code is accelerated now, by the global names that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["ACCELERATED", "is_accelerated", "is_users", "set_user_files"]

ACCELERATED: dict[int, dict[str, Any]] = {}  # global names that mean dcarray's objects now, by identity
_user_files: list[Callable[[str], bool]] = []


def set_user_files(has: Callable[[str], bool]) -> None:
    """Tell which files are the user's own, where ``import numpy`` gives dcarray.

    Parameters
    ----------
    has : callable
        Whether a file is one of them.
    """
    _user_files[:] = [has]


def is_users(names: dict[str, Any]) -> bool:
    """Whether code with these global names is the user's own, where all of that is accelerated.

    Parameters
    ----------
    names : dict
        The global names of a function or module.
    """
    if not _user_files:
        return False
    file = names.get("__file__")
    return isinstance(file, str) and _user_files[0](file)


def is_accelerated(names: dict[str, Any]) -> bool:
    """Whether code with these global names is accelerated at the moment.

    Parameters
    ----------
    names : dict
        The global names of a function or module.
    """
    return ACCELERATED.get(id(names)) is names or is_users(names)
