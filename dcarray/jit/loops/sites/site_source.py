"""Where sites are in the source: the text of their statements, and the names that they use."""

from __future__ import annotations

from typing import NamedTuple

from dcarray.ir.records import record

__all__ = ["SitePlace", "SiteSource", "constant"]


@record(frozen=True, slots=True)
class SiteSource:
    """The source text of a site's statements, and the names that they use.

    Attributes
    ----------
    source : str
        A loop, or several other statements, without indentation.
    file : str
    line, last : int
        Its place in the program.
    needed, others : tuple of str
        The variables that the statements read before they bind them, after `ITEMS` if the program computes
        what a loop goes through; and other global names that they read.
    live : tuple of str
        The variables that the statements bind and that may be read afterwards.
    counters : frozenset of str
        Those of ``needed`` that are variables of loops around the site: ints that change from run to run.
    is_loop : bool
    returns : bool
        Whether the last statement is a ``return``.
    is_nested : bool
        Whether the statements have a loop inside a loop.
    members : tuple of tuple of str
        The attributes of names that the statements read, such as ``("np", "sqrt")``.
    lists : tuple of str
        The names of the lists that the statements lengthen or shorten.
    shared : tuple of str
        The variables that are global names.
    by_identity : bool
        Whether its module compares objects by identity.
    asked : bool
        Whether the program computes the condition, of a ``while``, before it asks the site.
    """

    source: str
    file: str
    line: int
    last: int
    needed: tuple[str, ...]
    others: tuple[str, ...]
    live: tuple[str, ...]
    counters: frozenset[str] = frozenset()
    is_loop: bool = True
    returns: bool = False
    is_nested: bool = False
    members: tuple[tuple[str, ...], ...] = ()
    lists: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    by_identity: bool = False
    asked: bool = False


class SitePlace(NamedTuple):
    """A site's source, and its relation to the module's other sites.

    Attributes
    ----------
    source : SiteSource
    outer : int
        The number of the site around it; -1: none.
    resumable : bool
        Whether it is a loop's site that is asked in each iteration, too: to do the remaining ones.
    watch : int
        The number of the innermost loop that it is at or in; -1: none.
    """

    source: SiteSource
    outer: int
    resumable: bool
    watch: int = -1


def constant(number: int, kind: str = "site") -> str:
    """Return the text constant that stands for a site, or the watch of an innermost loop, in a syntax tree,
    until `site_code` replaces it in the compiled code."""
    return f"\0dcarray's {kind} {number}"
