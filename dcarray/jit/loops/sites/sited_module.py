"""The code of a module or function with sites, and the places of these, as plain data that can be stored."""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from types import CodeType
from typing import NamedTuple

from .codes import note_codes
from .site import Site
from .site_code import with_constants
from .site_source import SitePlace, SiteSource

__all__ = ["SitedModule"]


class SitedModule(NamedTuple):
    """The code of a module, or of a function and its inner ones, with constants in place of their sites.

    Attributes
    ----------
    code : code
    places : list of SitePlace
        The sites' places; a constant has the index of its place.
    places_of : dict
        Lists of these indices, by the name and first line of the code object that has the sites.
    """

    code: CodeType
    places: list[SitePlace]
    places_of: dict[tuple[str, int], list[int]]

    def filled(self, plain: CodeType, sites: Sequence[Site], left: frozenset[Site] = frozenset()) -> CodeType:
        """Return the code with the given sites in place of its constants, or as `with_constants` says without
        those in ``left``, registered with ``plain`` as its original."""
        sited = with_constants(self.code, plain, self.places, sites, left)
        note_codes(sited, plain, {code: [sites[k] for k in at] for code, at in self.places_of.items()})
        return sited

    @staticmethod
    def loads(data: bytes) -> SitedModule:
        """Return the module whose bytes `dumps` returned."""
        code, stored, places_of = marshal.loads(data)
        places = [SitePlace(SiteSource(*values), *others) for values, *others in stored]
        return SitedModule(code, places, places_of)

    def dumps(self) -> bytes:
        """Return the module as bytes, which only the same version of Python can load."""
        names = SiteSource.__match_args__
        places = [(tuple([getattr(source, n) for n in names]), *others) for source, *others in self.places]
        return marshal.dumps((self.code, places, self.places_of))
