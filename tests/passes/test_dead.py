"""What nobody reads goes, and what somebody may read stays."""

from dcarray.ir.passes.portable.dead import DEAD


def test_golden(golden):
    golden(DEAD)
