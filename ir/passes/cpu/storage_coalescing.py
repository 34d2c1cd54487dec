"""Storage coalescing: large temporaries with disjoint live ranges become one array.

Memory allocation would let them share memory anyway.  But as one array they have dependences: no statement is
moved before the last use of the array's previous contents, so a chain of steps reuses the same few arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcarray.ir.analysis.effects import touched_arrays
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Array, Branch, Loop, Region, While
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Facts
from dcarray.ir.renaming import rename

#: Smaller arrays, in bytes, stay in a cache.
MIN_BYTES = 32 << 20
#: Fewer equal arrays are no chain of steps.
MIN_ARRAYS = 4


def _candidates(region: Region) -> list[list[Array]]:
    """Return groups of temporaries of equal shape and dtype that share their memory with no other array."""
    facts = Facts(region)
    groups: dict[tuple[object, ...], list[Array]] = {}
    for array in region.arrays:
        root = facts.roots[array.name]
        if array.role == "temp" and array.strides is None and root == array.name and root not in facts.shared:
            groups.setdefault((array.dtype, array.shape), []).append(array)
    return [group for group in groups.values() if len(group) >= MIN_ARRAYS]


def _assignment(group: Sequence[Array], lives: dict[str, tuple[int, int]]) -> dict[str, str]:
    """Return a dict from each array that can reuse an earlier array's memory to the first array there."""
    places: dict[str, str] = {}
    until: dict[str, int] = {}  # the last use of each place
    for array in sorted((a for a in group if a.name in lives), key=lambda array: lives[array.name]):
        first, last = lives[array.name]
        place = next((name for name, end in until.items() if end < first), array.name)
        until[place] = last
        if place != array.name:
            places[array.name] = place
    return places


def _run(region: Region, log: Log) -> Region:
    groups = _candidates(region)
    if not groups or any(isinstance(stmt, Loop | While | Branch) for stmt in region.body):
        return region
    hints = SizeHints(region)
    lives: dict[str, tuple[int, int]] = {}
    for position, stmt in enumerate(region.body):
        for name in touched_arrays(stmt):
            lives[name] = lives.get(name, (position, position))[0], position
    places: dict[str, str] = {}
    for group in groups:
        size = len(group) * group[0].dtype.itemsize * hints.product(group[0].shape)
        if size >= MIN_BYTES:
            places.update(_assignment(group, lives))
    if not places:
        return region
    body = list(region.body)
    for old, new in places.items():
        first, last = lives[old]
        for position in range(first, last + 1):
            body[position] = rename(body[position], old, new)
        log.done("storage_coalescing", f"{old} lies where {new} was", body[first].loc)
    arrays = tuple(array for array in region.arrays if array.name not in places)
    return replace(region, arrays=arrays, body=tuple(body))


STORAGE_COALESCING = Pass("storage_coalescing", _run)
