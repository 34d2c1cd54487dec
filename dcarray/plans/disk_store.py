"""The disk plan store: plans and compiled routines in the cache folder, for later processes.

Loading a plan from it imports few modules, and never LLVM.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from dcarray.core import __version__
from dcarray.core.errors import Untraceable

from .plan_folder import plan_folder, shared_folder, stores_plans
from .requests import Request, RoutineRequest

if TYPE_CHECKING:
    from dcarray.lowering.program.loaded_plan import LoadedPlan
    from dcarray.lowering.runtime.disk import DiskCache

__all__ = ["load_bytes", "load_data", "load_plan", "make_folder", "refusal", "save", "save_data"]

_UNTRACEABLE = b"untraceable"


def load_plan(request: Request) -> LoadedPlan | None:
    """Return the stored plan of a request, or None; raise `Untraceable` if it is known that there is none."""
    plan = load_bytes(request)
    if plan is None:
        return None
    if error := refusal(plan):
        raise error
    from dcarray.lowering.program import loaded_plan

    try:
        return loaded_plan.deserialised(plan)
    except Exception:  # a damaged file only costs the time to plan again
        return None


def load_bytes(request: Request | RoutineRequest, reads_sources: bool = False) -> bytes | None:
    """Return the bytes that `save` has stored for a request on a machine like this one, or None; without
    ``reads_sources`` also if the files of this package have changed, and nothing was stored since then."""
    store = _store(plan_folder(request.cache_dir)) if stores_plans(request.cache_dir) else None
    key = _key(request, store, reads_sources) if store else None
    return store.read(key) if store and key else None


def refusal(stored: bytes) -> Untraceable | None:
    """Return the reason that is stored in place of a plan; None if it is a plan."""
    if not stored.startswith(_UNTRACEABLE):
        return None
    _, line, reason = stored.decode().split("\0")
    return Untraceable(reason, int(line))


def make_folder(cache_dir: str | None) -> None:
    """Make the folder for plans if it does not exist."""
    folder = plan_folder(cache_dir)
    if folder:
        with suppress(OSError):  # who writes into it says what is wrong
            os.makedirs(folder, 0o700, exist_ok=True)


def save(request: Request | RoutineRequest, plan: bytes | Untraceable) -> None:
    """Store a serialised plan (`lowering.program.serialise`), the reason why there is none, or the code of a
    routine."""
    store = _store(plan_folder(request.cache_dir))
    if isinstance(plan, Untraceable):
        plan = b"\0".join((_UNTRACEABLE, str(plan.line).encode(), plan.reason.encode()))
    if store and (key := _key(request, store)):
        store.write(key, plan)


PLANNING = ("core", "tiering", "recording", "plans", "jit")
"""The folders of this package on whose code plans depend, besides `dcarray.ir` and `dcarray.lowering`."""


def _store(folder: str | None) -> DiskCache | None:
    from dcarray.lowering.runtime.disk import cache_in

    return cache_in(folder, plan_folder(shared_folder())) if folder else None


def load_data(cache_dir: str | None, kind: str, what: str, of_code: bool = True) -> bytes | None:
    """Return the bytes that `save_data` stored for ``what``, of the kind ``kind``; None if there are none."""
    store = _store(plan_folder(cache_dir)) if stores_plans(cache_dir) else None
    return store.read(_data_key(kind, what, of_code)) if store else None


def save_data(cache_dir: str | None, kind: str, what: str, data: bytes, of_code: bool = True) -> None:
    """Store bytes other than a plan for ``what``, a thing of the kind ``kind``; ``of_code`` says whether they
    depend on the code of this package, not only on its version.  Programs store them at their ends, so they
    belong to the sizes and times of the files: to read all these files takes too long there."""
    store = _store(plan_folder(cache_dir))
    if store:
        store.write(_data_key(kind, what, of_code), data)


def _data_key(kind: str, what: str, of_code: bool) -> str:
    from dcarray.lowering.runtime.disk import sha256, stamp

    made_by = sys.version, stamp(*source_folders()) if of_code else __version__
    text = "\0".join((kind, *made_by, what))
    return sha256(text.encode(errors="surrogatepass")).hexdigest()  # names of files may be no text


def _key(request: Request | RoutineRequest, store: DiskCache, reads_sources: bool = True) -> str | None:
    """Return the key of what is stored for a request; None if the sources of this package, a digest of which
    is part of it, would have to be read, and ``reads_sources`` is False.  Nobody has stored a plan of theirs
    then, unless in the shared folder."""
    from dcarray.lowering.cpu.machine_fingerprint import machine_fingerprint
    from dcarray.lowering.runtime.disk import known_digest, sha256, stored_digest

    digest_of = stored_digest if reads_sources or store.below is not None else known_digest
    if (sources := digest_of(store, *source_folders())) is None:
        return None
    own = ""
    if not isinstance(request, RoutineRequest) and ":" in request.target:  # a target of somebody's own
        from dcarray.lowering.targets import source_digest

        own = source_digest(request.target)
    import numpy as np

    made_by = sys.version, sources, own
    text = "\0".join(("plan", machine_fingerprint(), np.__version__, *made_by, request.text()))
    return sha256(text.encode()).hexdigest()


def source_folders() -> list[str]:
    """Return the folders of the source that plans depend on."""
    # not `from dcarray import ir`, which asks the lazy package for an attribute, and so loads all of it
    layers = [import_module(f"dcarray.{name}") for name in ("ir", "lowering")]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [os.path.join(package, name) for name in PLANNING]
    return folders + [os.path.dirname(layer.__file__ or "") for layer in layers]
