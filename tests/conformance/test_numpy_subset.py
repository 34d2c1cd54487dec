"""A few of NumPy's own tests of each module on wrapped arrays, and the list of those that do not pass."""

import numpy as np
import pytest

from conformance import numpy_suite
from conformance.known import known

_EACH = 12
_OF = "2.4."  # the versions of NumPy whose tests the list is of
_LISTED = 172  # may only shrink


@pytest.mark.skipif(not np.__version__.startswith(_OF), reason=f"the list is of the tests of NumPy {_OF}x")
def test_some_of_every_module() -> None:
    passed, failures = numpy_suite.run_some(_EACH)
    assert not failures.keys() - known("defaults", numpy_suite.KNOWN).keys(), failures
    assert min(passed.values()) > 0, passed


def test_the_list_only_shrinks() -> None:
    listed = {mode: known(mode, numpy_suite.KNOWN) for mode in numpy_suite.MODES}
    assert len(listed["defaults"]) <= _LISTED
    for tests in listed.values():
        assert all(reason for reason in tests.values())


@pytest.mark.skipif(not np.__version__.startswith(_OF), reason=f"the modules are those of NumPy {_OF}x")
def test_every_module_is_run_or_out_of_scope() -> None:
    chosen = {f"{part}:{name}" for part, names in numpy_suite.MODULES.items() for name in names.split()}
    left = {name for names in numpy_suite.OUT_OF_SCOPE.values() for name in names.split()}
    assert not chosen & left
    folder = numpy_suite.PACKAGES / "numpy"
    there = {
        f"{part}:{file.stem.removeprefix('test_')}"
        for part in numpy_suite.MODULES
        for file in (folder / part / "tests").glob("test_*.py")
    }
    assert there <= chosen | left
