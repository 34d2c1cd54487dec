"""The folders of plans, own and shared, without any code that loads a plan."""

from __future__ import annotations

import os

__all__ = ["plan_folder", "shared_folder", "stores_plans"]


def plan_folder(cache_dir: str | None) -> str | None:
    """Return the folder of plans in a cache folder; None without a cache folder."""
    return os.path.join(cache_dir, "plans") if cache_dir else None


def shared_folder() -> str | None:
    """Return the cache folder that several users read and no program writes; None without one."""
    return os.environ.get("DCARRAY_CACHE_SHARED") or None


def stores_plans(cache_dir: str | None) -> bool:
    """Whether there are folders with plans.  Looking for plans costs a millisecond, for imports, which is
    saved if there are none."""
    folders = (plan_folder(cache_dir), plan_folder(shared_folder())) if cache_dir else ()
    return any(folder is not None and os.path.isdir(folder) for folder in folders)
