"""Insertion of prefetches into optimised LLVM text.

LLVM does not vectorise a loop with prefetches in it.  So the emitter only puts loads with prefetch distances
into an access group each, which stays with a load when it becomes a load of vectors.
"""

from __future__ import annotations

import re

from .metadata import FUNCTION, REFERENCE, nodes

__all__ = ["NAME", "PREFETCH", "insert_prefetches"]

#: The named metadata that describes the access groups: a group, an argument, a factor and a cache each.
NAME = "dcarray.ahead"
PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
_ENTRY = re.compile(r'!(\d+), !"(\w*)", i64 (-?\d+), i64 (\d)')
_LOAD = re.compile(r"^  %[\w.]+ = load <\d+ x \w+>, ptr (%[\w.]+),.*!llvm\.access\.group !(\d+).*$", re.M)


def insert_prefetches(text: str) -> str:
    """Return the optimised LLVM text with prefetches for the marked loads of vectors; the same object
    where there are none."""
    found = nodes(text, NAME)
    if found is None:
        return text
    entries, inner = found
    wanted: dict[str, list[tuple[str, str, str]]] = {}
    for entry in entries:
        group, arg, size, locality = _ENTRY.fullmatch(inner[entry]).groups()  # type: ignore[union-attr]
        wanted.setdefault(group, []).append((arg, size, locality))
    lists = {
        node: [want for group in REFERENCE.findall(inside) for want in wanted.get(group, ())]
        for node, inside in inner.items()
    }
    count = 0

    def function(found: re.Match[str]) -> str:
        whole = found[0]
        head = whole.partition("\n")[0]
        distances: dict[tuple[str, str], str] = {}

        def load(line: re.Match[str]) -> str:
            nonlocal count
            made = [line[0]]
            for arg, size, locality in lists.get(line[2], ()):
                distance = size
                if arg:
                    if f"%{arg}," not in head and f"%{arg})" not in head:
                        continue
                    distance = distances.setdefault((arg, size), f"%ahead.{arg}.{len(distances)}")
                count += 1
                made.append(f"  %ask.{count} = getelementptr i8, ptr {line[1]}, i64 {distance}")
                made.append(f"  call void @llvm.prefetch.p0(ptr %ask.{count}, i32 0, i32 {locality}, i32 1)")
            return "\n".join(made)

        made = _LOAD.sub(load, whole)
        if not distances:
            return made
        first, entry, rest = made.partition("entry:\n")
        if not entry:
            return whole
        sums = "".join(f"  {name} = mul i64 %{arg}, {size}\n" for (arg, size), name in distances.items())
        return f"{first}{entry}{sums}{rest}"

    made = FUNCTION.sub(function, text)
    declared = "declare void @llvm.prefetch.p0(" in text
    return made if declared or not count else f"{made}\n{PREFETCH}\n"
