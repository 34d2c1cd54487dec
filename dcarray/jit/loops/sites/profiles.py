"""Profiles of earlier runs: which sites of a source ran as compiled code, with which the next run begins, and
which were left to Python, which it plans later."""

from __future__ import annotations

import atexit
import os
from _thread import start_new_thread
from collections.abc import Sequence
from contextlib import suppress

from dcarray.core import config

from .site import Site

__all__ = ["heat_known"]

_KIND = "sites"


def heat_known(source: str, sites: Sequence[Site]) -> None:
    """Have those sites of a source ask for plans at once that had some in an earlier run, and those later
    that were left to Python; what becomes of them in this run is noted at its end.  Without waiting: another
    thread reads the profile."""
    options = config.current()
    if not sites or options.jit != "background" or options.cache_dir is None:
        return
    folder, pid = options.cache_dir, os.getpid()

    def heat() -> None:
        from dcarray.plans import disk_store

        known, _, refused = (disk_store.load_text(folder, _KIND, source) or "").partition("/")
        for number in map(int, refused.split()):
            sites[number].doubtful = True
        for number in map(int, known.split()):
            sites[number].known = True
            sites[number].heat()

    def save() -> None:
        from dcarray.core.counters import settle
        from dcarray.plans import disk_store

        settle()
        known = [str(number) for number, site in enumerate(sites) if site.runs and not site.refused]
        refused = [
            str(n) for n, site in enumerate(sites) if site.refused or (site.doubtful and not site.runs)
        ]
        if (known or refused) and os.getpid() == pid:
            text = f"{' '.join(known)}/{' '.join(refused)}"
            if disk_store.load_text(folder, _KIND, source) != text:
                disk_store.save_text(folder, _KIND, source, text)

    atexit.register(save)
    if os.path.isdir(folder):
        with suppress(RuntimeError):  # no thread can be started
            start_new_thread(heat, ())
