"""A statement's accesses as linear forms, and the kernel arguments (pointers, integers) that address them.

A window of an array with strides is a linear form: a start, plus a coefficient for each axis of the iteration
domain.  Windows of one array with equal coefficients share a pointer, to the least index at which one of them
starts; each adds its own offset.  Small offsets are constants in the kernel's text, so that a stencil needs
few registers; large ones are integer arguments, so that the bounds of slices do not change the text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dcarray.ir import dims, windows
from dcarray.ir.memo import kept
from dcarray.ir.nodes import Array, Dim, Gather, Load, Region, Window
from dcarray.ir.records import record
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Affine, Buffer, DType, Pointer, Scratch, Term, affine

Spot = tuple[str, Affine]  # a buffer and an offset in it
NEAR = 16  # relative offsets up to this are constants of the kernel
LANES = 4  # strides of narrow elements up to this are: whole vectors are loaded, gaps included


def equal(a: Dim, b: Dim) -> bool:
    """Whether two dimensions are proved to be equal."""
    if type(a) is int and type(b) is int:
        return a == b
    return dims.prove_eq(a, b) is True


def positive(a: Dim) -> bool:
    """Whether a dimension is proved to be at least 1."""
    return a > 0 if type(a) is int else dims.prove_lt(0, a) is True


def total(factors: Iterable[Dim]) -> Dim:
    """Return the product of dimensions."""
    return dims.simplify(math.prod(factors))


@kept
def strides(array: Array) -> tuple[Dim, ...]:
    """Return the strides of an array in elements."""
    if array.strides is not None:
        return array.strides
    result: list[Dim] = []
    step: Dim = 1
    for extent in reversed(array.shape):
        result.append(step)
        step = dims.simplify(step * extent)
    return tuple(reversed(result))


@record(frozen=True, slots=True)
class Access:
    """A window as a linear form over the iteration domain."""

    array: Array
    start: tuple[Dim, ...]  # first index along every array axis
    coefs: tuple[Dim, ...]  # elements per step of every domain axis
    along: tuple[int | None, ...]  # which domain axis every array axis follows


def linear(window: Window, array: Array, rank: int) -> Access:
    """Return the linear form of a window over a domain of ``rank`` axes."""
    coefs: list[Dim] = [0] * rank
    for index, stride in zip(window.index, strides(array), strict=True):
        if index.axis is not None:
            coefs[index.axis] = dims.simplify(coefs[index.axis] + index.stride * stride)
    along = tuple(index.axis for index in window.index)
    return Access(array, tuple(index.offset for index in window.index), tuple(coefs), along)


def dense(array: Array) -> bool:
    """Whether different indices of an array are proved to be different elements in memory."""
    if array.strides is None:
        return True
    axes = [(s, n) for s, n in zip(array.strides, array.shape, strict=True) if not equal(n, 1)]
    if all(type(s) is int and type(n) is int for s, n in axes):
        reach = 1
        for stride, extent in sorted((abs(s), n) for s, n in axes):
            if stride < reach:
                return any(n == 0 for _, n in axes)
            reach += stride * (extent - 1)
        return True
    step: Dim = 1
    for stride, extent in reversed(axes):  # symbolic: only C order, with any padding
        if dims.prove_le(step, stride) is not True:
            return False
        step = dims.simplify(stride * extent)
    return True


class Memory:
    """The alias analysis of a region's arrays: which of them share memory, and whether windows overlap."""

    def __init__(self, region: Region) -> None:
        self.arrays = {array.name: array for array in region.arrays}
        self._forms: dict[tuple[Window, int], Access] = {}

    def linear(self, window: Window, rank: int) -> Access:
        """Return the linear form of a window over a domain of ``rank`` axes."""
        if (window, rank) not in self._forms:
            self._forms[window, rank] = linear(window, self.arrays[window.array], rank)
        return self._forms[window, rank]

    def family(self, name: str) -> str:
        """Return the array at the root of an array's base chain."""
        base = self.arrays[name].base
        return name if base is None else self.family(base)

    def _overlay(self, name: str) -> tuple[Any, ...] | None:
        """Return a key, equal for arrays of one address and dtype; None if that is not known."""
        array, root = self.arrays[name], self.arrays[self.family(name)]
        if array is root:
            return (root.name, root.dtype)
        plain = root.role in ("temp", "out") and root.strides is None and array.strides is None
        return (root.name, array.dtype) if plain else None

    def identical(self, a: Window, b: Window) -> bool:
        """Whether two windows are proved to give the same element at every point of the domain."""
        if a.array == b.array:
            return a.index == b.index or windows.same(a, b)
        place = self._overlay(a.array)
        if place is None or place != self._overlay(b.array):
            return False
        one, two = self.linear(a, len(a.shape)), self.linear(b, len(a.shape))
        return equal(origin(one), origin(two)) and all(map(equal, one.coefs, two.coefs))

    def disjoint(self, a: Window, b: Window) -> bool:
        """Whether two windows are proved to share no element."""
        apart = a.array == b.array and windows.overlap(a, b) is False
        return apart or self.family(a.array) != self.family(b.array)


memory_of = kept(Memory)
"""The same for a region, made once."""


def origin(access: Access) -> Dim:
    """Return the offset in elements, from the array's first element, at which a linear form starts."""
    steps = zip(access.start, strides(access.array), strict=True)
    return dims.simplify(sum(offset * stride for offset, stride in steps))


@dataclass(slots=True)
class _Group:
    """The accesses that share one pointer."""

    access: Access  # the first of them
    reference: list[Dim]
    loops: tuple[Dim, ...]
    extents: tuple[Dim, ...]
    read: bool = False
    written: bool = False


@dataclass(slots=True)
class Arguments:
    """The pointer and integer arguments of one kernel, numbered in the order of first use.

    Windows with the same strides share a pointer.  In a kernel of a loop over statements (``inner``), all
    windows of an array share a pointer to the array's first element, and offsets that depend on the loop's
    variable are part of the kernel's text.
    """

    memory: Memory
    rank: int  # of the domain
    loops: tuple[tuple[int, ...], ...]  # the domain axes, collapsed and ordered; others have extent 1
    extents: tuple[Dim, ...]  # of the loops
    inner: Mapping[str, Affine] | None = None  # variables of the kernel's own loops; None: it has none
    ints: list[Dim] = field(default_factory=list)
    private: dict[str, Spot] = field(default_factory=dict)  # buffers of arrays in scratch or on the stack
    pieces: tuple[str, Dim] | None = None  # the variable and the number of a parallel loop's chunks
    _names: dict[Any, str] = field(default_factory=dict)
    _groups: list[_Group] = field(default_factory=list)
    _scratch: list[Scratch] = field(default_factory=list)

    def kin(
        self,
        rank: int,
        loops: tuple[tuple[int, ...], ...],
        extents: tuple[Dim, ...],
        inner: Mapping[str, Affine] | None = None,
    ) -> Arguments:
        """Return the arguments for another statement of the same kernel, with its own loops."""
        return replace(self, rank=rank, loops=loops, extents=extents, inner=inner)

    def integer(self, dim: Dim, *what: Any) -> Affine:
        """Return an integer argument with the value ``dim``; calls with equal ``dim`` and ``what`` share it.
        Variables of the kernel's loops, and small numbers added to them, stay in the text instead."""
        if self.inner is None:
            return self._argument(dim, *what)
        rest, moving = self._split_variables(dim)
        if not moving:
            return self._argument(rest)
        parts = [product(self.number(factor), variable) for factor, variable in moving]
        return affine(0, self.number(rest), *parts)

    def function(self, address: int) -> str:
        """Return the name of an integer argument with the address of a function."""
        (term,) = self._argument(address, "function").terms
        return str(term.arg)

    def number(self, dim: Dim) -> Affine:
        """Return ``dim`` as a constant if it is a small number, else as an integer argument."""
        return affine(dim) if type(dim) is int and abs(dim) <= NEAR else self.integer(dim, "number")

    def _split_variables(self, dim: Dim) -> tuple[Dim, list[tuple[Dim, Affine]]]:
        """Return ``dim`` without the variables of the kernel's loops, and these variables with factors."""
        inner = self.inner or {}
        try:
            rest, factors = dims.linear(dim, inner)
        except ValueError as error:
            raise Unsupported(str(error)) from None
        return rest, [(factor, inner[name]) for name, factor in factors.items()]

    def _argument(self, dim: Dim, *what: Any) -> Affine:
        name = self._names.get((dim, *what))
        if name is None:
            name = self._names[(dim, *what)] = f"n{len(self.ints)}"
            self.ints.append(dim)
        return Affine(0, (Term(1, name),))

    def extent(self, loop: int) -> Affine:
        """Return the extent of a loop."""
        return self.integer(self.extents[loop], "extent", loop)

    def bounds(self, loop: int) -> tuple[Affine, ...]:
        """Return the integers whose minimum is the extent of a loop."""
        if self.inner is None:
            return (self.extent(loop),)
        return tuple(self.integer(bound) for bound in dims.least_of(self.extents[loop]))

    def scratch(self, dtype: DType, size: Dim) -> str:
        """Add a scratch buffer of ``size`` elements and return its name."""
        self._scratch.append(Scratch(dtype, dims.simplify(size)))
        return f"t{len(self._scratch) - 1}"

    def scratch_per_piece(self, dtype: DType, size: Dim) -> Spot:
        """Add scratch memory with ``size`` elements for each chunk of the kernel's parallel loop; return the
        buffer and the offset of the chunk's part."""
        if self.pieces is None:
            return self.scratch(dtype, size), affine()
        var, count = self.pieces
        return self.scratch(dtype, count * size), product(self.integer(size), affine(0, Term(1, None, var)))

    def access(self, window: Window) -> Access:
        """Return the linear form of a window of the domain."""
        return self.memory.linear(window, self.rank)

    def reach(self, load: Load | Gather) -> Access:
        """Return the linear form of a load's window, or of a gather's array."""
        return self.gather_access(load) if isinstance(load, Gather) else self.access(load.window)

    def gather_access(self, node: Gather) -> Access:
        """Return the linear form that is a gather's array's first element at every point."""
        array = self.memory.arrays[node.window.array]
        zeros = (0,) * len(array.shape)
        return Access(array, zeros, (0,) * self.rank, (None,) * len(array.shape))

    def stride(self, array: Array, axis: int) -> Affine:
        """Return the stride of an array as a constant (0 or 1) or an integer argument."""
        stride = strides(array)[axis]
        if type(stride) is int and 0 <= stride <= 1:
            return affine(stride)
        return self.integer(stride, "row", axis)

    def note(self, access: Access, mode: Literal["r", "w"]) -> None:
        """Register a read or a write; all must be registered before the first call of ``address``."""
        if access.array.name in self.private:
            return
        group = self._find(access)
        if group is None:
            start = list(access.start) if self.inner is None else [0] * len(access.start)
            group = _Group(access, start, self.steps(access), self.extents)
            self._groups.append(group)
        for axis, offset in enumerate(access.start):
            distance = dims.simplify(offset - group.reference[axis])
            if type(distance) is int and distance < 0 and self.inner is None:
                group.reference[axis] = offset
        if mode == "r":
            group.read = True
        else:
            group.written = True

    def accesses(self) -> list[Access]:
        """Return one access for each pointer argument."""
        return [group.access for group in self._groups]

    def steps(self, access: Access) -> tuple[Dim, ...]:
        """Return the coefficients of a linear form, one for each loop."""
        return tuple(access.coefs[axes[-1]] for axes in self.loops)

    def _find(self, access: Access) -> _Group | None:
        steps = self.steps(access)
        for group in self._groups:
            alike = group.access.array is access.array
            if alike and self.inner is not None:
                return group
            if alike and len(group.loops) == len(steps) and all(map(equal, group.loops, steps)):
                return group
        return None

    def _stride(self, array: Array, loop: int, dim: Dim) -> Affine:
        lanes = LANES if array.dtype.itemsize < 4 and array.dtype.kind in "iub" else 1
        if type(dim) is int and -1 <= dim <= lanes:
            return affine(dim)
        return self.integer(dim, "stride", loop)

    def slope(self, access: Access, loop: int) -> Affine:
        """Return the stride of an access along a loop, in elements."""
        return self._stride(access.array, loop, self.steps(access)[loop])

    def _shift(self, access: Access, axis: int, reference: Dim) -> Affine:
        """Return the offset of a window's start from the pointer along one array axis, in elements."""
        distance = dims.simplify(access.start[axis] - reference)
        if type(distance) is int and distance == 0:
            return affine()
        stride = strides(access.array)[axis]
        unit = type(stride) is int and stride == 1
        if self.inner is not None:
            distance, moving = self._split_variables(distance)
            if moving:
                by = affine(1) if unit else self.stride(access.array, axis)
                parts = [
                    self._shift(
                        replace(access, start=(*access.start[:axis], distance, *access.start[axis + 1 :])),
                        axis,
                        0,
                    )
                ]
                for factor, variable in moving:
                    step = (
                        scale(factor, by)
                        if type(factor) is int
                        else self.integer(dims.simplify(factor * stride))
                    )
                    parts.append(product(step, variable))
                return affine(0, *parts)
        if type(distance) is not int or abs(distance) > NEAR:
            return self.integer(dims.simplify(distance * stride), "shift")
        if unit:
            return affine(distance)
        for loop, step in enumerate(self.steps(access)):
            if self.loops[loop][-1] == access.along[axis] and equal(step, stride):
                return scale(distance, self._stride(access.array, loop, step))
        return scale(distance, self.stride(access.array, axis))

    def address(self, access: Access, variables: Sequence[Affine]) -> tuple[str, Affine]:
        """Return the buffer and offset of a window's element at given values of the loops."""
        own, group = self.private.get(access.array.name), self._find(access)
        if own is None:
            assert group is not None
            reference, own = group.reference, (f"p{self._groups.index(group)}", affine())
        else:
            reference = [0] * len(access.start)
        parts = [self._shift(access, axis, at) for axis, at in enumerate(reference)]
        for loop, step in enumerate(self.steps(access)):
            parts.append(product(self._stride(access.array, loop, step), variables[loop]))
        return own[0], affine(0, own[1], *parts)

    def buffers(self) -> tuple[tuple[Buffer, ...], tuple[Pointer | Scratch, ...]]:
        """Return the pointer arguments and their bindings; scratch comes last."""
        members: dict[str, list[_Group]] = {}
        for group in self._groups:
            members.setdefault(self.memory.family(group.access.array.name), []).append(group)
        buffers, pointers = [], list[Pointer | Scratch]()
        for number, group in enumerate(self._groups):
            array = group.access.array
            kin = members[self.memory.family(array.name)]
            alone = len(kin) == 1 or not any(other.written for other in kin)
            access: Literal["r", "w", "rw"] = "rw" if group.read and group.written else "r"
            if group.written and not group.read:
                access = "w"
            buffers.append(Buffer(f"p{number}", array.dtype, access, alone))
            moved = Access(array, tuple(group.reference), group.access.coefs, group.access.along)
            pointers.append(Pointer(array.name, origin(moved)))
        for number, scratch in enumerate(self._scratch):
            buffers.append(Buffer(f"t{number}", scratch.dtype, "rw"))
            pointers.append(scratch)
        return tuple(buffers), tuple(pointers)

    def bytes(self) -> Dim:
        """Return the bytes moved: each pointer's footprint, once if it is read and once if it is written."""
        moved: Dim = 0
        for group in self._groups:
            used = (n for n, step in zip(group.extents, group.loops, strict=True) if not equal(step, 0))
            times = int(group.read) + int(group.written)
            moved = moved + times * group.access.array.dtype.itemsize * total(used)
        return dims.simplify(moved)


def scale(factor: int, value: Affine) -> Affine:
    """Return ``factor * value``."""
    return affine(factor * value.const, *(Term(factor * t.coef, t.arg, t.var) for t in value.terms))


def unit_step(value: Affine, var: str) -> int | None:
    """Return by how much an affine value grows per iteration of a loop if that is 0 or 1; else None."""
    own = [term for term in value.terms if term.var == var]
    return 0 if not own else 1 if own == [Term(1, None, var)] else None


def product(a: Affine, b: Affine) -> Affine:
    """Return ``a * b``, where ``a`` is a constant or a multiple of one integer argument; raise `Unsupported`
    if the product is not affine."""
    if not a.terms:
        return scale(a.const, b)
    if len(a.terms) > 1:
        raise Unsupported("an address is not affine")
    (factor,) = a.terms
    terms = [Term(factor.coef * t.coef, factor.arg, t.var) for t in b.terms if t.arg is None]
    if len(terms) != len(b.terms) or a.const:
        raise Unsupported("an address is not affine")
    return affine(0, Term(factor.coef * b.const, factor.arg), *terms)
