"""Profiles of earlier runs: which sites of a source ran as compiled code; the next run begins with them."""

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
    """Have those sites of a source ask for plans at once that had some in an earlier run; what this run
    compiles is noted at its end.  Without waiting: another thread reads the profile."""
    options = config.current()
    if not sites or options.jit != "background" or options.cache_dir is None:
        return
    folder, pid = options.cache_dir, os.getpid()

    def heat() -> None:
        from dcarray.plans import disk_store

        text = disk_store.load_text(folder, _KIND, source)
        numbers = [int(word) for word in text.split()] if text else []
        if numbers:
            for number in numbers:
                sites[number].known = True
                sites[number].heat()

    def save() -> None:
        from dcarray.core.counters import settle
        from dcarray.plans import disk_store

        settle()
        numbers = [number for number, site in enumerate(sites) if site.runs and not site.refused]
        if numbers and os.getpid() == pid:
            text = " ".join(map(str, numbers))
            if disk_store.load_text(folder, _KIND, source) != text:
                disk_store.save_text(folder, _KIND, source, text)

    atexit.register(save)
    if os.path.isdir(folder):
        with suppress(RuntimeError):  # no thread can be started
            start_new_thread(heat, ())
