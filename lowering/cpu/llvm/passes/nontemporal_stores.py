"""Streaming (nontemporal) stores, inserted into optimised LLVM text.

LLVM makes no vectors of a loop with nontemporal stores of single elements, since these are not aligned to
vectors.  So the emitter only puts a store into a marked access group, which stays with it when it becomes a
store of vectors; the loop begins where these are aligned.
"""

from __future__ import annotations

import re

from dcarray.lowering.cpu.llvm.types import BITS

from .metadata import REFERENCE, nodes

__all__ = ["FENCE", "GROUP", "LINE", "use_streaming_stores"]

#: The named metadata that lists the marks.
GROUP = "dcarray.nontemporal"
#: Makes others see such stores in their order.
FENCE = "declare void @llvm.x86.sse.sfence()"
LINE = 64  # bytes that are stored at once

_LABEL = re.compile(r"^([\w.]+):")
_STORE = re.compile(r"^(  store <(\d+) x (\w+)> .*, align )\d+(,.*!llvm\.access\.group !(\d+).*)$")


def use_streaming_stores(text: str) -> str:
    """Return optimised LLVM text in which the vector stores with the mark are nontemporal (they bypass the
    caches); the same object if there are none."""
    listed = nodes(text, GROUP)
    if listed is None:
        return text
    marks = set(listed[0])
    marked = marks | {n for n, inside in listed[1].items() if marks.intersection(REFERENCE.findall(inside))}
    past = max(map(int, re.findall(r"^!(\d+) = ", text, re.M))) + 1
    lines, vectors, changed = [], False, False
    for line in text.split("\n"):
        if label := _LABEL.match(line):
            # The loop over vectors begins at an aligned element; what is made of the rest of it may not.
            vectors = label[1].startswith("vector.body")
        store = _STORE.match(line) if vectors else None
        if store is not None and store[5] in marked and store[3] in BITS:
            size = int(store[2]) * BITS[store[3]] // 8
            if size >= 16 and size & (size - 1) == 0:
                line, changed = f"{store[1]}{min(size, LINE)}{store[4]}, !nontemporal !{past}", True
        lines.append(line)
    return "\n".join([*lines, f"!{past} = !{{i32 1}}", ""]) if changed else text
