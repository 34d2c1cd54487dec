"""Places before loops that are not to be asked for a while, since to ask costs more than there is to gain."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Timer
from typing import Protocol

NAP = 1.0  # seconds


class Sleeper(Protocol):
    """What is open, unless it sleeps."""

    open: bool


_asleep: list[Sleeper] = []
_lock = Lock()
_timer: list[Timer] = []  # the one that runs, or the last one


def sleep(site: Sleeper) -> None:
    """Close a place for a while: the next runs may be others."""
    with _lock:
        site.open = False
        _asleep.append(site)
        if _timer and _timer[0].is_alive():  # in a child after a fork it is not
            return
        timer = Timer(NAP, _wake)
        timer.daemon = True
        with suppress(RuntimeError):  # no thread is to be had: it sleeps on
            timer.start()
            _timer[:] = [timer]


def _wake() -> None:
    with _lock:
        for site in _asleep:
            site.open = True
        _asleep.clear()
        _timer.clear()
