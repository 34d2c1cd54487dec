"""Object code of another process, loaded in this one."""

from __future__ import annotations

import threading

from dcarray.lowering.program.loaded_plan import NotPortable
from dcarray.lowering.runtime.disk import sha256

from .threads import Launch


def linked(code: bytes, phases: int, arguments: int, mask: int) -> Launch:
    """Return the launch of object code, which is linked once, however often it comes."""
    key = (sha256(code).digest(), phases, arguments, mask)
    found = _LINKED.get(key)
    if found is None:
        with _lock:
            found = _LINKED.get(key)
            if found is None:
                try:
                    found = Launch.of(code, phases, arguments, mask)
                    found.parts = None  # it is not to travel on, and need not keep its code
                    _LINKED[key] = found
                except (RuntimeError, OSError, ImportError) as error:
                    raise NotPortable(f"LLVM: {error}") from error
    return found


_LINKED: dict[tuple[bytes, int, int, int], Launch] = {}  # loaded code is never unloaded
_lock = threading.Lock()
