"""Sections from what a run of NPBench wrote, here an invented one."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import npbench
from benchmarks.npbench_figures import verdict
from benchmarks.npbench_report import section


def _ran(speedup: float, **more: Any) -> dict[str, Any]:
    seconds = 0.1 / speedup
    return {
        "seconds": [seconds] * 3,
        "speedup": [speedup, 0.9 * speedup, 1.1 * speedup],
        "first": 0.2,
        "worked": seconds,
        **more,
    }


@pytest.fixture
def told() -> dict[str, Any]:
    plain = _ran(1.0)
    note = "3 x sort at /far/away/suite/b_numpy.py:4 through NumPy"
    return {
        "machine": {"cpu": "A & B", "cores": "2", "python": "3.11", "numpy": "2.4"},
        "command": "python -m benchmarks npbench --suite PATH --size M",
        "size": "M",
        "rounds": 3,
        "benchmarks": {
            "ahead": {"numpy": plain, "dcarray": _ran(4.0), "jax": _ran(2.0), "numba": _ran(0.5)},
            "behind": {
                "numpy": plain,
                "dcarray": _ran(0.5, notes=[note], warm={"settled": False}),
                "jax": {"wrong": "no version"},
                "numba": {"wrong": "TypeError: <odd>"},
            },
            "broken": {"numpy": plain, "dcarray": {"wrong": "output 0 differs"}, "numba": _ran(20.0)},
            "endless": {"numpy": {"wrong": "not ready after 60 s"}},
            "lu": {"numpy": plain, "dcarray": _ran(0.96)},
        },
    }


def test_section_tells_losses_and_what_failed(told: dict[str, Any]) -> None:
    text = section(told)
    assert "`python -m benchmarks npbench --suite PATH --size M`" in text
    assert "* Geometric mean, all: dcarray 1.24 of 3, JAX 2.00 of 1, Numba 3.16 of 2" in text
    assert "* Geometric mean, whole-array: dcarray 1.41 of 2" in text
    assert "| ahead | 100 ms | 4.00 [3.60, 4.40] | 2.00 [1.80, 2.20] | 0.50 [0.45, 0.55] | 0.200 s |" in text
    assert (
        "Of the 4 in whole-array statements, below 0.95 of NumPy's speed: 1, without a right result: 1."
        in text
    )
    assert "* broken wrong: `output 0 differs`" in text
    (line,) = (line for line in text.splitlines() if line.startswith("* behind"))
    assert line.startswith(
        "* behind 0.50 [0.45, 0.55], work 2.00: `3 x sort at b_numpy.py:4 through NumPy`, `still"
    )
    assert "Of the 1 in loops over elements or short rows, below 0.95 of NumPy's speed: 0." in text
    assert "A peer is faster in 0 of 5." in text  # where we have a figure
    told["benchmarks"]["lu"]["jax"] = _ran(3.0)
    assert "A peer is faster in 1 of 5: lu 0.96 (JAX 3.00)." in section(told)


def test_from_files(told: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "m.json", tmp_path / "s.json"]
    files[0].write_text(json.dumps(told))
    files[1].write_text(json.dumps({**told, "size": "S"}))
    options = ["--docs", str(tmp_path / "docs.md")]
    sources = [word for file in files for word in ("--from", str(file))]
    assert npbench.main([*sources, *options]) == 1  # broken
    text = (tmp_path / "docs.md").read_text()
    assert text.count("## NPBench, size ") == 2
    assert "geometric means, all: numpy 1.00 of 4, dcarray 1.24 of 3" in capsys.readouterr().out
    npbench.main(["--from", str(files[0]), *options])
    assert (tmp_path / "docs.md").read_text().count("## NPBench") == 2
    with pytest.raises(ValueError, match="several files of one size"):
        npbench.main(["--from", str(files[0]), "--from", str(files[0])])
    with pytest.raises(SystemExit):
        npbench.main(["--from", str(files[0]), "--json", str(files[1])])


def test_verdicts() -> None:
    words = [verdict(told) for told in ({}, {"second": 1}, {"wrong": "no version"}, {"wrong": "KeyError: 1"})]
    assert words == ["left out", "right", "none", "failed"]
