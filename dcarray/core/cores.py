"""The number of processors that this process should use, by affinity, the container's quota, and siblings.

Nothing is cached: affinity, quota and the number of sibling processes change during a run, so `config` calls
this now and then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from math import ceil
from typing import Any

from .unpatched import open_file

__all__ = ["affinity", "available", "quota", "siblings"]


def available() -> int:
    """Return the processors for this process: the smallest of those that it may run on and its quota, divided
    among the workers of one program; at least 1."""
    may, limit = affinity(), quota()
    if limit is not None:
        may = min(may, ceil(limit))
    return max(1, may // siblings()) if may > 1 else 1


def affinity() -> int:
    """Return the number of processors on which the system may run this process."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


# ---- the quota of a container -------------------------------------------------------------------------
def quota(groups: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> float | None:
    """Return the number of processors whose time this process's control groups may use; None if no group has
    a limit. Groups nest, so the smallest limit counts.

    Parameters
    ----------
    groups : str
        The file with the path of this process's group in each hierarchy.
    root : str
        The folder where hierarchies are mounted.
    """
    try:
        lines = _read(groups).splitlines()
    except (OSError, ValueError):
        return None
    limits: list[float] = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            for mount in (root, f"{root}/unified"):
                limits += [limit for group in _around(mount, path) if (limit := _limit_v2(group)) is not None]
        elif "cpu" in controllers.split(","):
            for mount in {f"{root}/cpu", f"{root}/{controllers}"}:
                limits += [limit for group in _around(mount, path) if (limit := _limit_v1(group)) is not None]
    return min(limits, default=None)


def _around(mount: str, path: str) -> Iterator[str]:
    """Yield the folder of a control group and those of the groups around it.  In a container the path may be
    the host's, of which only the mount exists; folders that do not exist have no limit."""
    names = [name for name in path.split("/") if name]
    if ".." not in names:
        for depth in range(len(names), 0, -1):
            yield "/".join((mount, *names[:depth]))
    yield mount


def _read(file: str) -> str:
    with open_file(file, encoding="utf-8", errors="surrogateescape") as text:
        return text.read()


def _numbers(file: str) -> list[int]:
    """Return the integers in a file; an empty list if the file does not exist or holds anything else."""
    try:
        return [int(word) for word in _read(file).split()]
    except (OSError, ValueError):
        return []


def _limit_v2(group: str) -> float | None:
    numbers = _numbers(f"{group}/cpu.max")  # "max" and a period without a limit
    return numbers[0] / numbers[1] if len(numbers) == 2 and min(numbers) > 0 else None


def _limit_v1(group: str) -> float | None:
    numbers = _numbers(f"{group}/cpu.cfs_quota_us") + _numbers(f"{group}/cpu.cfs_period_us")
    return numbers[0] / numbers[1] if len(numbers) == 2 and min(numbers) > 0 else None  # -1 without a limit


# ---- workers of one program ---------------------------------------------------------------------------
_parent = os.getppid() if hasattr(os, "getppid") else 0  # when this process began
_forked = False  # whether it was forked from a process that had dcarray
_forking = 0


def siblings() -> int:
    """Return how many workers share the processors, this one included; 1 where this process is no worker.

    A worker was started by `multiprocessing`, or forked from a process that had loaded dcarray, and its
    parent is still there.  Its siblings are the processes of the same parent that run the same program.
    If the system does not list them, as many as there are processors are assumed.
    """
    if not _forked and not _is_of_multiprocessing():
        return 1
    if os.getppid() != _parent:  # the parent has ended: this is a service of its own
        return 1
    try:
        program = os.readlink("/proc/self/exe")
        return max(1, sum(_runs(process, program) for process in _children(_parent)))
    except (OSError, ValueError):
        return affinity()


def _is_of_multiprocessing() -> bool:
    process: Any = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _children(process: int) -> list[int]:
    """Return the child processes of a process, whichever of its threads have started them."""
    children: list[int] = []
    for thread in os.listdir(f"/proc/{process}/task"):
        try:
            children += [int(word) for word in _read(f"/proc/{process}/task/{thread}/children").split()]
        except FileNotFoundError:  # the thread has ended, unless there are no such files
            if not os.path.exists("/proc/thread-self/children"):
                raise
    return children


def _runs(process: int, program: str) -> bool:
    """Whether a process runs a program and is no helper of `multiprocessing`; false if it has ended."""
    try:
        if os.readlink(f"/proc/{process}/exe") != program:
            return False
        return "resource_tracker" not in _read(f"/proc/{process}/cmdline")
    except OSError:
        return False


def _before_fork() -> None:
    global _forking
    _forking = os.getpid()


def _after_fork() -> None:
    global _forked, _parent
    _forked, _parent = True, _forking


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
