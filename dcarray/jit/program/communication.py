"""Programs that send messages: functions that call `dcarray.comm` between statements on their own arrays.

The statements between these calls, and loops without any, are sites (`dcarray.jit.loops.sites`), compiled for
the values of the first call; the calls of `dcarray.comm` run in their order, with the loops around them.
Arrays are each rank's own, and are never shared out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

from dcarray.api.array import ndarray
from dcarray.core import config
from dcarray.core.backend import is_distributed
from dcarray.core.errors import ProgramError
from dcarray.jit.decorator import sited

from ..loops.entry.sizes import SymbolicSize
from ..loops.sites.functions import with_sites
from ..loops.syntax.originals import called_by, original
from ..loops.syntax.syntax_facts import walk
from .annotations import Annotation, ArrayAnnotation, PassedAnnotation, evaluated_or_passed
from .description import Names, ProgramLike, check_sizes, source_tree

__all__ = ["PieceCall", "communicates", "parameters_of", "text_of_pieces"]

_MISSING = object()


def communicates(function: FunctionType) -> bool:
    """Whether a function calls `dcarray.comm`, itself or in functions and programs that it calls by name, or
    gets an argument of one of its classes."""
    return _communicates(function, [])


def _communicates(function: FunctionType, seen: list[FunctionType]) -> bool:
    if function in seen:
        return False
    seen.append(function)
    try:
        tree, _ = source_tree(function)
    except ProgramError:
        if len(seen) == 1:
            raise
        return False
    code, names = original(function), Names(function)
    local = {*code.co_varnames, *code.co_cellvars}
    places = [node.func for stmt in tree.body for node in walk(stmt) if isinstance(node, ast.Call)]
    hints = [one.annotation for one in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
    for node in (*places, *[part for hint in hints if hint is not None for part in walk(hint)]):
        value = _value(node, names, local)
        if _is_comms(value):
            return True
        called = value.written if isinstance(value, ProgramLike) else called_by(value)
        calls = node in places and type(called) is FunctionType and _is_users(called)
        if calls and _communicates(called, seen):
            return True
    return False


def _is_users(function: FunctionType) -> bool:
    """Whether a function may be the program's: it is not of a module of NumPy or Python."""
    package = str(function.__module__).partition(".")[0]
    return package not in ("numpy", "scipy", "dcarray") and package not in sys.stdlib_module_names


def _value(node: ast.AST, names: Mapping[str, Any], local: set[str]) -> Any:
    """Return the value of an expression that names modules and their attributes; for a method, its object."""
    if isinstance(node, ast.Name):
        return _MISSING if node.id in local else names.get(node.id, _MISSING)
    if not isinstance(node, ast.Attribute):
        return _MISSING
    owner = _value(node.value, names, local)
    return getattr(owner, node.attr, _MISSING) if isinstance(owner, ModuleType) else owner


def _is_comms(value: Any) -> bool:
    """Whether a value is a function, class or object of `dcarray.comm`."""
    kind = value if type(value) is FunctionType or isinstance(value, type) else type(value)
    return str(kind.__module__).startswith("dcarray.comm")


def parameters_of(function: FunctionType) -> tuple[tuple[str, Annotation | PassedAnnotation], ...]:
    """Return the names and types of the arguments of a program that sends messages; any object is accepted
    without a type.

    Raises
    ------
    ProgramError
        If an annotation fails, sizes contradict each other, or the function uses a size that no call
        determines.
    """
    tree, names = source_tree(function)
    file, line = original(function).co_filename, tree.lineno
    if tree.args.vararg or tree.args.kwarg:
        raise ProgramError(f"{function.__name__} takes any number of arguments", file, line)
    parameters = [
        (name, PassedAnnotation(object) if one is None else one)
        for name, one, _ in evaluated_or_passed(tree.args, names, file)
    ]
    typed = [(name, one) for name, one in parameters if not isinstance(one, PassedAnnotation)]
    check_sizes(typed, file, line)
    known = {s for _, a in typed if isinstance(a, ArrayAnnotation) for s in _symbols(a.shape)}
    for stmt in tree.body:
        for node in walk(stmt):
            if not isinstance(node, ast.Name):
                continue
            size = names.get(node.id)
            if isinstance(size, SymbolicSize) and not known.issuperset(size.names):
                raise ProgramError(f"the value of {size} does not follow from any axis", file, node.lineno)
    return tuple(parameters)


def _symbols(shape: tuple[Any, ...]) -> list[str]:
    return [name for n in shape if isinstance(n, SymbolicSize) for name in n.names]


class PieceCall:
    """A callable that runs a function that sends messages; the statements between messages are compiled.

    Parameters
    ----------
    function : function
        The function, with its symbolic sizes as further arguments.
    """

    def __init__(self, function: FunctionType) -> None:
        self._prepared = sited(function, function)
        self._name = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its arrays are used as they are, not wrapped.

        Raises
        ------
        ValueError
            If an array lies in blocks.
        """
        for value in (*args, *kwargs.values()):
            if isinstance(value, ndarray) and is_distributed(value):
                raise ValueError(
                    f"{self._name}() sends messages, so its arrays are each rank's own: one that it is given "
                    "lies in blocks over the ranks; give it x.local, or x.gather()"
                )
        now = config.current()
        if now.jit != "background" and now.distribute_above == sys.maxsize:  # as inside of such a program
            return self._prepared()(*args, **kwargs)
        with config.options(distribute_above=None, jit="off" if now.jit == "off" else "eager"):
            return self._prepared()(*args, **kwargs)


def text_of_pieces(function: FunctionType) -> str:
    """Return the statements of a function that are compiled, and the reasons why others are not, so far."""
    pieces = with_sites(function)
    out = f"{function.__name__} sends messages: between them these statements are compiled at the first call"
    for site in [] if pieces is None else pieces[1]:
        if site.outer is None:
            source = site.source
            out += f"\n\n{source.file}:{source.line}{f': {site.refused}' if site.refused else ''}\n"
            out += "\n".join(f"    {line}" for line in source.source.splitlines())
    return out + "\n"
