"""The memory layout of a thread pool's state; see `pool`."""

from __future__ import annotations

__all__ = ["OFFSETS", "pool_bytes"]

OFFSETS = {
    "SLEEPERS": 64, "FLAGS": 128,
    "BUSY": 192, "THREADS": 200, "LAST": 208, "COOL": 216, "CPU": 224, "PATIENCE": 232, "REST": 240,
    "DEBT": 248,
    "JOB": 256, "GOOD": 304, "STOP": 320, "MUTEX": 384, "COND": 512, "DONE": 640, "NEXT": 704,
}  # fmt: skip
"""Byte offsets.  Fields that different threads write are on different cache lines.  From the last field on,
there is one line for each thread."""


def pool_bytes(threads: int) -> int:
    """Return the bytes of a pool of ``threads`` threads."""
    return OFFSETS["NEXT"] + 64 * threads
