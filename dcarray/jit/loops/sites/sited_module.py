"""The code of a module with sites, and the places of these, as plain data that is stored for the next run."""

from __future__ import annotations

import marshal
from types import CodeType
from typing import NamedTuple

from .site import SitePlace, SiteSource

__all__ = ["SitedModule"]


class SitedModule(NamedTuple):
    """A module's code with constants in place of its sites.

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
