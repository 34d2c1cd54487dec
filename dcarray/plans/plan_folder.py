"""The folder of plans in the cache folder, as those need to know it who may never load a plan."""

from __future__ import annotations

import os

__all__ = ["plan_folder", "stores_plans"]


def plan_folder(cache_dir: str | None) -> str | None:
    """Return the folder of plans in a cache folder; None without a cache folder."""
    return os.path.join(cache_dir, "plans") if cache_dir else None


def stores_plans(cache_dir: str | None) -> bool:
    """Whether there is such a folder: to look for a plan imports a millisecond's worth of modules."""
    folder = plan_folder(cache_dir)
    return folder is not None and os.path.isdir(folder)
