"""The sizes of the machine's caches, and the limits of time tiling and streaming stores derived from them."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path

from dcarray.ir.passes.cpu.time_tiling import CacheLimits

_LINUX = Path("/sys/devices/system/cpu/cpu0/cache")
_USUAL = {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}  # where the system does not say
# A larger last cache is shared by so many cores that it is hardly faster than memory: five-point steps on
# arrays of 4 MB took half as long in time tiles on a Xeon with 480 MB of it.
_DISTANT = 128 << 20
# Other programs use it, too: streaming stores gain a third from 100 MB on there, and lose some where 64 MB
# are written again and again and no other program needs the cache.
_SHARE = 96 << 20


@lru_cache(maxsize=1)
def sizes() -> tuple[int, int, int]:
    """Return the bytes of a core's first- and second-level data caches, and of the last-level cache."""
    by_level = dict(_USUAL)
    # not sysconf: on some processors it counts the last cache once for each part of the package
    for place in _LINUX.glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            if (place / "type").read_text().strip() != "Instruction":
                by_level[int((place / "level").read_text())] = _bytes((place / "size").read_text().strip())
    return by_level[1], by_level[2], by_level[max(by_level)]


def _bytes(text: str) -> int:
    """Return the number of bytes that a text such as ``1024K`` stands for."""
    unit = {"K": 10, "M": 20}.get(text[-1:], 0)
    return int(text[:-1] if unit else text) << unit


def limits(threads: int) -> CacheLimits:
    """Return the limits within which time tiling pays on this machine with ``threads`` threads."""
    first, near, last = sizes()  # half of the first one: the rest is for what passes through
    threads = max(1, threads)
    far = 7 * last // 8 // threads  # it is shared
    if last > _DISTANT:
        # Also where all arrays fit into the second caches of all cores: one band after the other is in the
        # first one.
        return CacheLimits(last=near, near=near, far=far, threads=threads, first=first // 2)
    # what is streamed through a core's cache need not all fit
    return CacheLimits(last=last, near=2 * near, far=far, threads=threads, first=first // 2)


def streaming_threshold() -> int:
    """Return the least size of an array, in bytes, for which streaming stores pay: one whose beginning is
    evicted from the caches before its end is written."""
    return min(sizes()[2], _SHARE)
