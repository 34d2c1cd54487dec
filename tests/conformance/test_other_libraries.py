"""Libraries on wrapped arrays: the command's lists and counts, and its quick parts if they are installed."""

import json
from pathlib import Path

import pytest

from conformance import libraries
from conformance.document import HEAD, write_section
from conformance.known import known

MOST = 397  # known failures; a smaller list lowers this


def test_known_failures_have_a_cause_and_get_fewer() -> None:
    listed = known("defaults", libraries.KNOWN)
    assert len(listed) <= MOST
    for test, reason in listed.items():
        cause, _, why = reason.partition(": ")
        assert cause in ("NumPy-like", "backend list", "ours") and why, test


def test_the_table_counts_every_outcome() -> None:
    results = [
        libraries.Result("scipy", "fft", "1.0", 5, {"a": "wrong"}, {"np_only": 3}),
        libraries.Result("pandas", "", "3.0", 2, {"b": "worse", "c": "worst"}),
    ]
    lines = libraries.table(results, {"b": "backend list: classes"}).splitlines()
    assert lines[1].split() == ["scipy.fft", "1.0", "6", "5", "1", "3", "1", "NEW"]
    assert lines[2].split()[-5:] == ["1", "backend", "list,", "1", "NEW"]
    assert lines[-1].split() == ["all", "10", "7", "3", "3"]


def test_unknown_libraries_are_refused() -> None:
    with pytest.raises(SystemExit, match="no such library"):
        libraries.main(["--library", "nonesuch"])


def test_a_librarys_own_tests(tmp_path: Path) -> None:
    absent = libraries.missing("array-api-compat")
    if absent:
        pytest.skip(f"{absent} is not installed")
    assert libraries.main(["--library", "array-api-compat", "--json", str(tmp_path / "found.json")]) == 0
    (result,) = json.loads((tmp_path / "found.json").read_text())["results"]
    assert result["passed"] > 10


def test_sections_of_a_document_are_replaced_and_added(tmp_path: Path) -> None:
    file = tmp_path / "found.md"
    write_section(file, "One", "first")
    write_section(file, "Two", "second\n")
    write_section(file, "Three", "third")
    write_section(file, "Two", "other\n\n### inner\n\ntext")
    assert file.read_text() == (
        f"{HEAD}\n\n## One\n\nfirst\n\n## Two\n\nother\n\n### inner\n\ntext\n\n## Three\n\nthird\n"
    )
