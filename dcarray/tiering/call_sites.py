"""Call sites, each a code object and an instruction of the user's code, and their promotion to NumPy.

To record and to run a region costs some microseconds.  A recording may be a cheap statement or two on some
ten thousand elements, whose result is wanted at once.  NumPy would be faster, but that is known only when the
recording runs, not when a call is recorded.  If NumPy's time by `cost_model` is the shorter, it runs op by op
in NumPy.  If it comes again, the sites of all its calls are promoted: from then on NumPy runs these calls at
once, on arrays that are hardly larger and on which nothing is pending.

If such a result is used by a recorded statement, the site is demoted, and its next calls are recorded: some
sites of a recording are promoted before others.  That is done a few times.  After that a site is demoted only
where the rest of the recording runs as a region, which the site's call could have been a part of.  Such a
site is blocked: it is promoted again only after NumPy has often been sooner.  Calls that NumPy runs in any
case are promoted apart from this (``always``), to be sooner.

Where several ranks run a program no site is promoted, for all have to record the same.  How a call runs
depends on earlier runs, never on clocks.  NumPy computes sums, whose last bits depend on the algorithm, both
before and after a site is promoted.  With ``eager_below=0`` no site is promoted, nor without the C module,
which keeps the table (`call_sites.h`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dcarray.core.native import BUILT
from dcarray.core.processes import communicator

if BUILT:
    from dcarray._native import extension

__all__ = ["demote", "promote", "suspended"]


def promote(sites: Sequence[tuple[Any, ...]], elements: int, always: bool = False) -> None:
    """Let NumPy run the calls at these sites at once, on at most so many elements.

    Parameters
    ----------
    sites : sequence of (code, int, ...)
        The call sites, as in `Recording.sites`.
    elements : int
    always : bool, optional
        Whether NumPy would run these calls anyway, only later, so that recording them gains nothing.
    """
    if BUILT and communicator() is None:
        for code, instruction, *_ in sites:
            extension.promote(code, instruction, elements, always)


def demote(site: tuple[Any, int], block: bool = False) -> None:
    """Have the calls of a site recorded, since a result of it is an operand of something recorded.

    Parameters
    ----------
    site : (code, int)
    block : bool, optional
        Whether that runs as a region; then the site is not promoted again for some time.
    """
    if BUILT:
        extension.demote(*site, block)


@contextmanager
def suspended() -> Iterator[None]:
    """A context in which everything is recorded, as if no site had been promoted."""
    if not BUILT:
        yield
        return
    extension.suspend(1)
    try:
        yield
    finally:
        extension.suspend(-1)
