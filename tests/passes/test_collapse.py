"""Domain axes of length one vanish."""

from dcarray.ir.passes.portable.collapse import COLLAPSE


def test_golden(golden):
    golden(COLLAPSE)
