"""The flag that the code of an innermost loop looks at in each iteration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dcarray.core.tools import unseen

__all__ = ["Watch"]


class Watch:
    """A flag: whether the code in an innermost loop has active sites; an iteration looks at nothing else.

    Attributes
    ----------
    on : object
        `False`, or what is true in threads that no tool sees.
    """

    __slots__ = ("_sites", "on")

    def __init__(self) -> None:
        self.on: object = False
        self._sites: list[Any] = []

    def add(self, site: Any) -> None:
        """Watch another site, the loop's own or one in its body."""
        self._sites.append(site)
        site.watches += (self,)
        self.look()

    def look(self) -> None:
        """Compute ``on`` anew, since a site has changed."""
        on = any(site.resuming or (site.enabled and not site.resumable) for site in self._sites)
        self.on = unseen() if on else False

    def __reduce__(self) -> Any:
        """Pickle as a watch that is off."""
        return SimpleNamespace, (), {"on": False}
