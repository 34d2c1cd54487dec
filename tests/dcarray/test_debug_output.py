"""What the option ``debug`` prints, level by level."""

import numpy as np
import pytest

import dcarray as dc

MARKS = ("devices: cpu", " ran in ", "fuse: done", "region() {", "/* All phases", ".globl")
"""Words that each level prints, and none below it."""


@pytest.fixture(autouse=True)
def devices_anew():
    """The line of devices is printed once in a process."""
    from dcarray.plans import debug_output

    debug_output._say_devices.cache_clear()


@pytest.mark.parametrize("level", range(7))
def test_each_level_prints_what_those_below_it_do_and_more(capsys, level):
    with dc.options(debug=level, jit="eager", cache_dir=None, eager_below=0):
        x = dc.asarray(np.arange(1000.0))
        for _ in range(level + 2):  # another plan for each level
            x = np.sqrt(x * x + 1)
        dc.evaluate(x)
    shown = capsys.readouterr().err
    assert [mark in shown for mark in MARKS] == [number <= level for number in range(1, 7)]


def test_levels_are_numbers_or_a_flag():
    for value, level in ((True, 1), (False, 0), ("yes", 1), ("4", 4), (6, 6), ("", 0)):
        with dc.options(debug=value) as now:
            assert now.debug == level
    for wrong in (7, -1, "much", 1.5, None):
        with pytest.raises(ValueError, match="an integer from 0 to 6"), dc.options(debug=wrong):
            pass
