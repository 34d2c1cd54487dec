"""Whether the C module was built, and from this source."""

from __future__ import annotations

__all__ = ["BUILT"]

try:
    from dcarray._native.extension import REVISION as _REVISION
except ImportError:  # built without a C compiler
    _REVISION = 0

# Raised, here and in `extension.c`, with every change of the interface between the two, so that a module that
# was built before an update of the checkout is not used.
BUILT = _REVISION == 55
"""Whether `dcarray._native.extension` may be used."""
