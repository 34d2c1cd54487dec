"""Profiles of earlier runs: the sites of a source that were faster as compiled code, or were not judged,
with which the next run begins, and those that were left to Python, which it plans later."""

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

        text = disk_store.load_text(folder, _KIND, source) or "//"
        kept, refused, asked = [[*map(int, part.split())] for part in text.split("/")]
        for number in refused:
            sites[number].doubtful = True
        for number in kept:
            sites[number].kept = True
        for number in kept + asked:
            sites[number].known = True
            sites[number].heat()

    def save() -> None:
        from dcarray.core.counters import settle
        from dcarray.plans import disk_store

        settle()
        kept, refused, asked = [], [], []
        for number, site in enumerate(sites):
            if site.refused or (site.doubtful and not site.runs):
                refused.append(number)
            elif site.kept:
                kept.append(number)
            elif site.asked or site.runs:
                asked.append(number)
        if (kept or refused or asked) and os.getpid() == pid:
            text = "/".join(" ".join(map(str, part)) for part in (kept, refused, asked))
            if disk_store.load_text(folder, _KIND, source) != text:
                disk_store.save_text(folder, _KIND, source, text)

    atexit.register(save)
    if os.path.isdir(folder):
        with suppress(RuntimeError):  # no thread can be started
            start_new_thread(heat, ())
