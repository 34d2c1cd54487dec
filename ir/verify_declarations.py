"""The verifier of a region's declarations: its symbols, arrays and guards."""

from __future__ import annotations

import math
from typing import Any

from . import dims
from .integers import Expression
from .nodes import Array, Dim, Region, Stmt
from .parse import DTYPES, RESERVED
from .relations import Relation
from .text import show_stmt

__all__ = ["NATIVE", "DeclarationChecker", "VerifyError"]

NATIVE = frozenset(DTYPES.values())
"""The dtypes that arrays and expressions may have."""
_ROLES = ("in", "out", "inout", "temp")


class VerifyError(ValueError):
    """A region breaks a rule; the message names the rule and the statement."""


class DeclarationChecker:
    """The base class of the verifier: the checks of declarations, and errors that name rule and statement."""

    def __init__(self, region: Region) -> None:
        self.source = region
        self.arrays: dict[str, Array] = {}
        self.scope: set[str] = set()
        self.stmt: Stmt | None = None

    def fail(self, rule: str) -> VerifyError:
        if self.stmt is None:
            return VerifyError(rule)
        try:
            where = show_stmt(self.stmt, self.source)
        except Exception:  # what is malformed may not print
            where = repr(self.stmt)
        return VerifyError(f"{rule}, in: {where}")

    def need(self, holds: Any, rule: str) -> None:
        if not holds:
            raise self.fail(rule)

    def declarations(self) -> None:
        """Check the symbols, arrays and guards of the region."""
        for symbol in self.source.symbols:
            self.name(symbol.name)
            self.scope.add(symbol.name)
        for array in self.source.arrays:
            self.name(array.name)
            self.arrays[array.name] = array
        for array in self.source.arrays:
            self.array(array)
        for guard in self.source.guards:
            names = guard.names if isinstance(guard, Relation) else frozenset[str]()
            self.need(names <= self.scope, "a guard may only use the symbols")

    def name(self, name: str) -> None:
        self.need(name.isidentifier() and name not in RESERVED, f"{name!r} cannot be a name")
        taken = name in self.scope or name in self.arrays
        self.need(not taken, f"{name!r} is declared twice")

    def array(self, array: Array) -> None:
        name = array.name
        if not (array.dtype in NATIVE and array.dtype.isnative):
            raise self.fail(f"{name} has the dtype {array.dtype}")
        self.need(array.role in _ROLES, f"{name} has the role {array.role!r}")
        self.dims(array.shape, f"the shape of {name}")
        for n in array.shape:
            self.need(dims.prove_nonneg(n) is not False, f"{name} has a negative size")
        if array.strides is not None:
            self.dims(array.strides, f"the strides of {name}")
            self.need(len(array.strides) == len(array.shape), f"{name} needs one stride per axis")
        if array.base is not None:
            self.base(array)

    def base(self, array: Array) -> None:
        seen = {array.name}
        up = array.base
        while up is not None:
            self.need(up in self.arrays, f"{array.name} has the base {up}, which is not declared")
            self.need(up not in seen, f"{array.name} is its own base")
            seen.add(up)
            up = self.arrays[up].base
        base = self.arrays[str(array.base)]
        if base.role in ("temp", "out"):
            both = (array, base)
            own = array.role in (base.role, "temp")
            self.need(own, f"{array.name} and its base {base.name} differ in role")
            first, second = (math.prod(a.shape) * a.dtype.itemsize for a in both)
            equal = dims.prove_eq(first, second)
            self.need(equal is not False, f"{array.name} is not as large as its base {base.name}")

    def dims(self, values: tuple[Dim, ...], what: str) -> None:
        for dim in values:
            if type(dim) is int:
                continue
            self.need(isinstance(dim, Expression), f"{what} is no dimension: {dim!r}")
            unknown = dims.free_symbols(dim) - self.scope
            self.need(not unknown, f"{what} uses {', '.join(sorted(unknown))}, which is not declared")
