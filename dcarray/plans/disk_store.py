"""Plans that outlive the process: what one has made, the next ones find in the cache folder.

To look there imports next to nothing, and nobody asks LLVM.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .requests import Compilation, Request

if TYPE_CHECKING:
    from dcarray.lowering.program.parcel import Parcel
    from dcarray.lowering.runtime.disk import DiskCache

__all__ = ["find", "keep", "left"]


def find(request: Request) -> Parcel | None:
    """The plan of a request, if a process like this one has left it."""
    plan = left(request)
    if plan is None:
        return None
    from dcarray.lowering.program import parcel

    try:
        return parcel.opened(plan)
    except Exception:  # whatever is wrong with what was left, it costs time and nothing else
        return None


def left(request: Request | Compilation) -> bytes | None:
    """What a process like this one has left for a request, as it was given to `keep`."""
    folder = _folder(request)
    if not folder or not os.path.isdir(folder):
        return None
    shelf = _shelf(folder)
    found = shelf.read(_key(request)) if shelf else None
    if found is None:
        return None
    from dcarray.lowering.cpu import host

    return found[_MARK:] if found[:_MARK] == host.machine_fingerprint().encode() else None


def keep(request: Request | Compilation, plan: bytes) -> None:
    """Leave a plan, as `lowering.packing.packed` gives it, or other code, for the next processes."""
    from dcarray.lowering.cpu import host

    folder = _folder(request)
    shelf = _shelf(folder) if folder else None
    if shelf:
        shelf.write(_key(request), host.machine_fingerprint().encode() + plan)


PLANNING = ("core", "tiering", "recording", "plans", "jit")
"""The folders of this package on whose code plans depend, besides those of `dcarray.ir` and
`dcarray.lowering`."""

_MARK = 16  # bytes of a machine's mark


def _folder(request: Request | Compilation) -> str | None:
    """A folder of their own, so that who finds none has nothing to look for."""
    return os.path.join(request.cache_dir, "plans") if request.cache_dir else None


@cache
def _shelf(folder: str) -> DiskCache | None:
    from dcarray.lowering.runtime.disk import DiskCache, is_supported

    return DiskCache(folder) if is_supported() else None


def _key(request: Request | Compilation) -> str:
    from dcarray.lowering.runtime.disk import sha256
    from dcarray.lowering.target import source_digest

    own = "" if isinstance(request, Compilation) else source_digest(request.target)
    text = "\0".join(("plan", *_surroundings(), own, request.text()))
    return sha256(text.encode()).hexdigest()


@cache
def _surroundings() -> tuple[str, ...]:
    """What a plan depends on besides the request and the processor: the versions, and the source of all that
    takes part in making one."""
    from dcarray.lowering.runtime.disk import digest

    return sys.version, np.__version__, digest(*source_folders())


def source_folders() -> list[str]:
    """The folders of the source that plans depend on."""
    from dcarray import ir, lowering

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [os.path.join(package, name) for name in PLANNING]
    return folders + [os.path.dirname(layer.__file__ or "") for layer in (ir, lowering)]
