"""Bits of NumPy's floating-point exceptions."""

from __future__ import annotations

from .fp_state import ODD

__all__ = ["ALL", "DIVIDE", "INVALID", "MINDFUL", "OVER", "RAISING", "UNDER"]

DIVIDE, OVER, UNDER, INVALID = 1, 2, 4, 8
ALL = DIVIDE | OVER | UNDER | INVALID
RAISING = DIVIDE | OVER | INVALID
"""The exceptions that Python's numbers may raise as errors: all but underflow."""
MINDFUL = UNDER | ODD
"""The bits under which inputs of small magnitude do not rule all exceptions out: small numbers may underflow,
and an error state other than warn and raise (`ODD`) may react to any."""
