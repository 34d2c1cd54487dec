"""Rewrites of a region, one file each; ``portable/pipeline.py`` and ``cpu/pipeline.py`` have their order.

In every pass legality (``can_...``, which answers with a ``Reason`` or None) is apart from the action.
"""

from .base import Log, Note, Pass

__all__ = ["Log", "Note", "Pass"]
