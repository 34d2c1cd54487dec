"""Backoff of loop sites: a site is disabled for a while where asking it costs more than a plan could save."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Timer
from typing import Protocol

BACKOFF = 1.0  # seconds


class Enableable(Protocol):
    """The part of a loop site that a backoff changes."""

    enabled: bool


_disabled: list[Enableable] = []
_lock = Lock()
_timer: list[Timer] = []  # the one that runs, or the last one


def disable_for_a_while(site: Enableable) -> None:
    """Disable a loop site for `BACKOFF` seconds: later runs may be longer."""
    with _lock:
        site.enabled = False
        _disabled.append(site)
        if _timer and _timer[0].is_alive():  # in a child after a fork it is not
            return
        timer = Timer(BACKOFF, _enable_all)
        timer.daemon = True
        with suppress(RuntimeError):  # no thread can be started: the site stays disabled
            timer.start()
            _timer[:] = [timer]


def _enable_all() -> None:
    with _lock:
        for site in _disabled:
            site.enabled = True
        _disabled.clear()
        _timer.clear()
