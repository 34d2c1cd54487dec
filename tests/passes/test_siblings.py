"""Statements over one domain share a nest when point by point is the same as one after the other."""

from dcarray.ir.passes.portable.siblings import SIBLINGS


def test_golden(golden):
    golden(SIBLINGS)
