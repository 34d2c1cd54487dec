"""Members of modules that are built into compiled code, such as ``np.sqrt``: the program may rebind them."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

from ..syntax.syntax_facts import walk

__all__ = ["MODULES", "Check", "is_draw", "is_own", "member_paths", "still_hold", "watched_members"]

Check = tuple[dict[str, Any], str, Any]
"""A dictionary of names, one of them, and the object that it has to be bound to."""

MODULES = (
    "numpy", "numpy.linalg", "numpy.fft", "numpy.random", "math", "cmath", "random", "functools", "builtins"
)  # fmt: skip
"""The modules whose members compiled code knows."""
_ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_not": "invert", "bitwise_right_shift": "right_shift",
    "conj": "conjugate", "mod": "remainder", "pow": "power", "true_divide": "divide", "amax": "max",
    "amin": "min", "concat": "concatenate", "bool_": "bool", "permute_dims": "transpose",
}  # fmt: skip
_NUMBERS = {"pi": math.pi, "e": math.e, "inf": math.inf, "euler_gamma": 0.5772156649015329}


def member_paths(*nodes: ast.AST) -> tuple[tuple[str, ...], ...]:
    """Return the attributes of names in syntax trees, such as ``("np", "linalg", "norm")``, each once."""
    paths: dict[tuple[str, ...], None] = {}
    for root in nodes:
        for node in walk(root):
            path: list[str] = []
            inner: ast.AST = node
            while isinstance(inner, ast.Attribute):
                path.append(inner.attr)
                inner = inner.value
            if path and isinstance(inner, ast.Name):
                paths[inner.id, *reversed(path)] = None
    return tuple(paths)


def watched_members(paths: tuple[tuple[str, ...], ...], names: Mapping[str, Any]) -> list[Check] | None:
    """Return the checks that members of modules still are what they are now; None if one is not the module's
    own object. ``names`` has the values of names."""
    checks: list[Check] = []
    for path in paths:
        value = names.get(path[0])
        for name in path[1:]:
            if value is None or not issubclass(type(value), ModuleType) or value.__name__ not in MODULES:
                break
            held = vars(value)
            if name not in held:  # made when it is asked for
                break
            value = held[name]
            if not is_own(name, value):
                return None
            checks.append((held, name, value))
    return checks


_HOMES = frozenset({"numpy", "math", "cmath", "_functools", "functools", "builtins", "dcarray"})
_KINDS = "builtins", "numpy", "dcarray", "_cython"


def is_own(name: str, value: Any) -> bool:
    """Whether an object is what one of these modules has under a name.  An object of the program, such as a
    wrapper or a mock, may have the names of what it replaces, but not its class or global names."""
    kind = type(value)
    if kind is float:
        return _NUMBERS.get(name) == value or (name == "nan" and value != value)
    if value is None or name in _NUMBERS:
        return value is None and name == "newaxis"
    if issubclass(kind, ModuleType):
        return value.__name__ in (f"numpy.{name}", f"dcarray.{name}")
    if is_draw(value):
        return bool(value.__name__ == name)
    if kind is FunctionType:
        where = value.__globals__.get("__name__")
    else:
        where = getattr(value, "__module__", None) if kind.__module__.startswith(_KINDS) else None
    if kind.__name__ == "ufunc":
        where = "numpy"
    if not isinstance(where, str) or where.partition(".")[0] not in _HOMES:
        return False
    own = getattr(value, "__name__", name)
    return own == name or _ALIASES.get(name) == own or not callable(value) or isinstance(value, type)


def is_draw(value: Any) -> bool:
    """Whether an object is a function of Python's module `random` that draws from its generator."""
    if type(value) not in (BuiltinMethodType, MethodType):
        return False
    from .generators import python_instance  # which imports NumPy

    generator = python_instance()
    return generator is not None and value.__self__ is generator


def still_hold(checks: list[Check]) -> bool:
    """Whether all checks hold."""
    for held, name, value in checks:  # noqa: SIM110 (a generator takes twice as long)
        if held.get(name) is not value:
            return False
    return True
