"""The command that runs CPython's own tests, on some short files of them."""

import importlib.util

import pytest

from conformance import cpython
from conformance.cpython import Outcomes, judge

HAS_TESTS = importlib.util.find_spec("test.test_unpack") is not None


def test_a_test_counts_if_it_passes_plainly() -> None:
    plain = Outcomes({"a": ("passed", ""), "b": ("failed", ""), "c": ("passed", ""), "d": ("skipped", "")})
    other = Outcomes({"a": ("failed", "E: no"), "b": ("failed", ""), "e": ("failed", "of its class")})
    assert judge(plain, other) == {"a": "failed: E: no", "e": "failed: of its class", "c": "not run"}
    other.tests["b"] = "crash", ""
    assert "c" not in judge(plain, other)  # which may have ended the process before it ran


@pytest.mark.skipif(not HAS_TESTS, reason="this Python has no tests of its own")
@pytest.mark.parametrize(("name", "way"), [("unpack", "tests eager"), ("bisect", "module eager")])
def test_some_files_pass(name: str, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cpython.main([name, "--way", way]) == 0, capsys.readouterr().out
    assert f"{name:<22}{way:<16}" in capsys.readouterr().out
