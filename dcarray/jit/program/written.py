"""The original function of a program, called when its region does not serve a call, or it has none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from inspect import signature
from types import CodeType, FunctionType
from typing import Any

from dcarray.api.array import ndarray
from dcarray.jit.decorator import accelerate

from ..loops.entry.sizes import SymbolicSize
from ..loops.sites.functions import give
from ..loops.syntax.originals import original
from ..loops.syntax.source import with_parameters
from .annotations import Annotation, PassedAnnotation
from .arguments import wrapped
from .communication import PieceCall, communicates, parameters_of
from .description import Names

__all__ = ["WrittenFunction"]


class WrittenFunction:
    """A program's original function, with symbolic sizes.

    Parameters
    ----------
    function : function

    Attributes
    ----------
    names : Names
        The names around the function, with their values.
    signature : inspect.Signature
    """

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self.names = Names(function)
        self._calls: dict[tuple[str, ...], Any] = {}  # what calls it, by the names of its sizes

    def __call__(self, given: dict[str, Any], sizes: Mapping[str, int]) -> Any:
        """Call the function, with its hot parts compiled; ``given`` has all arguments by name, ``sizes`` its
        symbols' values."""
        spec, values = self._function.__code__, {}
        for name, size in self._sizes():
            if sizes.keys() >= {*size.names}:
                values[name] = size.value(sizes)
        symbols = tuple(values)
        call = self._calls.get(symbols)
        if call is None:
            function = self.with_sizes(symbols)
            call = self._calls[symbols] = PieceCall(function) if self.in_pieces else accelerate(function)
        given = dict(given)
        plain = [given.pop(name) for name in spec.co_varnames[: spec.co_argcount]]
        any_wrapped = any(isinstance(value, ndarray) for value in (*plain, *given.values()))
        result = call(*plain, **given, **values)
        if not (symbols and any_wrapped):
            return result
        return tuple(map(wrapped, result)) if type(result) is tuple else wrapped(result)

    def knows(self, sizes: Mapping[str, int]) -> bool:
        """Whether there is a value for each size that the function reads."""
        return all(sizes.keys() >= {*size.names} for _, size in self._sizes())

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of sizes that the function reads."""
        return tuple([name for name, _ in self._sizes()])

    def _sizes(self) -> tuple[tuple[str, SymbolicSize], ...]:
        """Return the names of the sizes that the function reads, with the sizes."""
        if any(self.names.get(name) is not size for name, size in self._known):
            del self._known  # a name is bound anew
        return self._known

    @cached_property
    def _known(self) -> tuple[tuple[str, SymbolicSize], ...]:
        code = self._function.__code__
        named = [(name, self.names.get(name)) for name in sorted({*_names(code), *code.co_freevars})]
        return tuple([(name, size) for name, size in named if isinstance(size, SymbolicSize)])

    def with_sizes(self, symbols: tuple[str, ...]) -> FunctionType:
        """Return the function with further arguments: the values of these symbolic sizes."""
        function = self._function
        variant = with_parameters(function, original(function), symbols) if symbols else function
        assert variant is not None  # the source has been read
        give(variant, variant.__code__)
        return variant

    @cached_property
    def in_pieces(self) -> bool:
        """Whether the function sends messages, and so is compiled in pieces."""
        return communicates(self._function)

    @cached_property
    def passed(self) -> tuple[tuple[str, Annotation | PassedAnnotation], ...]:
        """The names and types of the arguments of a function that sends messages."""
        return parameters_of(self._function)

    @property
    def where(self) -> tuple[str, int]:
        """The function's file and line."""
        code = original(self._function)
        return code.co_filename, code.co_firstlineno

    @cached_property
    def signature(self) -> Any:
        return signature(self._function)


def _names(code: CodeType) -> tuple[str, ...]:
    inner = [name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)]
    return (*code.co_names, *inner)
