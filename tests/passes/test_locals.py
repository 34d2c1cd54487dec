"""Temporaries that only live inside one nest need no memory."""

from dcarray.ir.passes.portable.locals import LOCALS


def test_golden(golden):
    golden(LOCALS)
