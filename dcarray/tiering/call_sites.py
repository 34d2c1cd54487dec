"""Call sites, each a code object and an instruction of the user's code, and their promotion to NumPy.

To record and to run a region costs some microseconds.  Where a recording by itself - a cheap statement or two
on some ten thousand elements, whose result is wanted at once - is done sooner by NumPy is not known when a
call is recorded, but it is when it runs.  If NumPy's time, as `cost_model` estimates it, is the shorter, it
runs call by call in NumPy; and if it comes again, the sites of all its calls are promoted: from then on NumPy
does at once what they ask for, on arrays that are hardly larger and on which nothing is pending.

Where a result made so turns out to be an operand of something that is recorded, the site is demoted, since
some sites of a recording are promoted before others: its next calls are recorded.  That is done a few times.
After that it is only where the rest of the recording runs as a region, which might have been one with what
the site made: such a site is blocked, and promoted again only where NumPy has then often been sooner all the
same.  Nothing of this concerns what NumPy does in any case, and only sooner where the site is known.

Where several ranks run a program no site is promoted, for all have to record the same.  Which way a call goes
depends on what has run before, never on clocks; sums, of which the last bits may depend on who computes them,
are NumPy's both before and after a site is promoted.  There is none of this with ``eager_below=0``, nor
without the C module, which keeps the table (`call_sites.h`) and asks it.
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
        The sites, as in `Recording.sites`.
    elements : int
    always : bool, optional
        NumPy does so anyway, only later: nothing is to be gained by recording it.
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
        Something that runs as a region: the site is not promoted again for some time.
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
