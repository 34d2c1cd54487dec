"""Libraries on wrapped arrays: the command's lists and counts, and its quick parts if they are installed."""

import json
from pathlib import Path

import pytest

from conformance import libraries
from conformance.known import known

MOST = 397  # known failures; a smaller list lowers this


def test_known_failures_have_a_cause_and_get_fewer() -> None:
    listed = known("defaults", libraries.KNOWN)
    assert len(listed) <= MOST
    for test, reason in listed.items():
        cause, _, why = reason.partition(": ")
        assert cause in ("NumPy-like", "backend list", "ours") and why, test


def test_a_librarys_own_tests(tmp_path: Path) -> None:
    absent = libraries.missing("array-api-compat")
    if absent:
        pytest.skip(f"{absent} is not installed")
    assert libraries.main(["--library", "array-api-compat", "--json", str(tmp_path / "found.json")]) == 0
    (result,) = json.loads((tmp_path / "found.json").read_text())["results"]
    assert result["passed"] > 10
