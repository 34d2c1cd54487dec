"""The table of targets, by name or by import path."""

from __future__ import annotations

import importlib

from .target import Target, module_digest

_BUILT_IN = {
    "cpu": "dcarray.lowering.cpu.llvm.target:TARGET",
    "c": "dcarray.lowering.cpu.c.target:TARGET",
    "cuda": "dcarray.lowering.gpu.cuda.target:TARGET",
    "opencl": "dcarray.lowering.gpu.opencl.target:TARGET",
}
_OF_DEVICES = frozenset({"cuda", "opencl"})  # which arrays on a device have, and nobody chooses
_loaded: dict[str, Target] = {}


def names() -> tuple[str, ...]:
    """Return the names of the built-in targets."""
    return tuple(_BUILT_IN)


def get(target: str | Target) -> Target:
    """Return the target with this name, or the one at the import path ``package.module:NAME``, whose module
    is imported on first use.

    Raises
    ------
    ValueError
        If there is no target with this name or at this path.
    """
    if isinstance(target, Target):
        return target
    loaded = _loaded.get(target)
    if loaded is None:
        loaded = _loaded[target] = _imported(target)
    return loaded


def _imported(name: str) -> Target:
    module, _, value = _BUILT_IN.get(name, name).partition(":")
    reason = ""
    if module == "__main__":
        reason = ": other processes cannot import '__main__'"
    elif value:
        try:
            target = getattr(importlib.import_module(module), value)
        except (ImportError, AttributeError) as error:
            reason = f": {error}"
        else:
            if isinstance(target, Target):
                return target
            reason = ": it is no Target"
    there = ", ".join([repr(one) for one in _BUILT_IN if one not in _OF_DEVICES])
    raise ValueError(
        f"unknown target {name!r}; the targets are {there}, and 'package.module:NAME' of one's own{reason}"
    )


def source_digest(name: str) -> str:
    """Return a digest of the source of a user's target, with its package; empty for a built-in target."""
    if name in _BUILT_IN:
        return ""
    get(name)
    return module_digest(name.partition(":")[0])
