"""Was the C module built, and from this source?"""

from __future__ import annotations

__all__ = ["BUILT"]

try:
    from dcarray._native.extension import REVISION as _REVISION
except ImportError:  # built without a C compiler
    _REVISION = 0

# To be raised, here and in `extension.c`, with every change of what the two sides expect of each other: what
# a checkout has built before it was brought up to date must not be taken.
BUILT = _REVISION == 41
"""May `dcarray._native.extension` be used?"""
