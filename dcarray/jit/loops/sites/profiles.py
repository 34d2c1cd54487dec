"""Profiles: what earlier runs of a program found out about a module's sites, for the next run.

A profile holds the module's code with sites.  It says which sites were faster as compiled code: these load
their plans at once.  Others load plans that are stored once they are hot, and sites that were left to Python
are planned much later.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress

from dcarray.core import config

from .site import Site
from .sited_module import SitedModule
from .verdicts import ran_once, repeats

__all__ = ["Profile", "profile_of"]

_SITES, _CODE = "sites", "code"
_WHOLE = 1000  # of a site's `part`, as a whole number
_LEAST_CHARACTERS = 1024  # characters of a module whose code is stored even if none of its sites ran


def profile_of(source: str | bytes, file: str, is_script: bool) -> Profile | None:
    """Return the profile of a module; None if no cache folder is in use."""
    options = config.current()
    if options.jit != "background" or options.cache_dir is None:
        return None
    text = source if isinstance(source, str) else source.decode("latin-1")
    return Profile(options.cache_dir, f"{sys.flags.optimize} {is_script} {file}\0{text}")


class Profile:
    """The profile of a module: what earlier runs found out, and what this run leaves for the next.

    Parameters
    ----------
    folder : str
        The cache folder.
    key : str
        The identification of the module, by its source among others.
    """

    def __init__(self, folder: str, key: str) -> None:
        self._folder, self._key = folder, key
        self._is_new = True
        # numbers of sites that were faster, refused, asked for and foreseen; parts of the first ones
        self._known = ""

    def module(self) -> SitedModule | None:
        """Return the module's code with sites from the profile; None if no earlier run has stored it."""
        if not os.path.isdir(self._folder):
            return None
        from dcarray.plans import disk_store

        data = disk_store.load_data(self._folder, _CODE, self._key)
        if data is None:
            return None
        self._is_new = False
        self._known = (disk_store.load_data(self._folder, _SITES, self._key) or b"////").decode()
        return SitedModule.loads(data)

    def begin(self, module: SitedModule, sites: Sequence[Site]) -> frozenset[Site]:
        """Apply what an earlier run found out to the sites: those that gained load their plans at once, those
        left to Python are planned later.  Return those for which no plan was asked, or found, if this run
        needs no others.  What this run finds out is stored when it ends."""
        left: set[Site] = set()
        if not self._is_new:
            numbers = [[*map(int, part.split())] for part in self._known.split("/")]
            kept, refused, asked, foreseen, parts = numbers
            for number in refused:
                sites[number].doubtful = True
            for number in kept + asked:
                sites[number].known = True
            for number, part in zip(kept, parts, strict=True):
                sites[number].kept, sites[number].part = True, part / _WHOLE
                sites[number].heat()  # to load the others' plans may take longer than they save
            for number, part in zip(foreseen[::2], foreseen[1::2], strict=True):
                sites[number].foreseen = part / _WHOLE
                sites[number].heat()  # its loop may run once
            if repeats():
                left = {*sites} - {sites[number] for number in kept + asked + foreseen[::2]}
        pid = os.getpid()

        def end() -> None:
            if os.getpid() == pid:
                with nullcontext() if config.current().debug else suppress(Exception):
                    self._save(module, sites)

        atexit.register(end)
        return frozenset(left)

    def _save(self, module: SitedModule, sites: Sequence[Site]) -> None:
        from dcarray.core.counters import settle

        settle()
        kept, refused, asked = [], [], []
        for number, site in enumerate(sites):
            if site.refused or (site.doubtful and not site.runs):
                refused.append(number)
            elif site.kept:
                kept.append(number)
            elif site.asked or site.runs:
                asked.append(number)
        once = [k for k, site in enumerate(sites) if k not in refused and ran_once(site)]
        foreseen = [n for k in once for n in (k, round(_WHOLE * max(sites[k].seconds, sites[k].foreseen)))]
        parts = [round(_WHOLE * sites[number].part) for number in kept]
        text = "/".join(" ".join(map(str, part)) for part in (kept, refused, asked, foreseen, parts))
        if text in ("////", self._known) and not (self._is_new and len(self._key) > _LEAST_CHARACTERS):
            return
        from dcarray.plans import disk_store

        disk_store.save_data(self._folder, _SITES, self._key, text.encode())
        if self._is_new:
            disk_store.save_data(self._folder, _CODE, self._key, module.dumps())
