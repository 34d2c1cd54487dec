"""Memory of messages that are under way when nobody waits for them any more: MPI still writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpi4py import MPI

__all__ = ["left", "sweep"]

_left: list[tuple[list[MPI.Request], Any]] = []


def left(
    requests: Sequence[MPI.Request],
    memory: Any,
    kept: list[tuple[list[MPI.Request], Any]] = _left,
    null: MPI.Request = MPI.REQUEST_NULL,
) -> None:
    """Keep what messages lie in until they are through.

    Parameters
    ----------
    requests : sequence of MPI.Request
        Those that are through already are of no account.
    memory : object
        What holds their windows.
    kept, null
        Not to be given: at the end of the program the module's names may be gone already.
    """
    if going := [request for request in requests if request != null]:
        kept.append((going, memory))


def sweep() -> None:
    """Let go of what is through by now."""
    if _left:
        _left[:] = [one for one in _left if not MPI.Request.Testall(one[0])]
