"""Random loop programs: traced ones give NumPy's results, and none is traced that NumPy refuses."""

import warnings

from hypothesis import given, settings
from hypothesis import strategies as st
from loop_programs import names, program
from loop_requests import check

from dcarray.core.errors import Untraceable


def traces(seed: int) -> bool:
    source, sums = program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(source, names(seed), rtol=1e-7 if sums else 0.0)
        except Untraceable as refused:
            assert "not valid" not in refused.reason, refused.reason
            return False
    return True


@settings(max_examples=48, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    traces(seed)


def test_most_programs_are_traced() -> None:
    assert sum(map(traces, range(100))) > 50
