"""Work in a process's first seconds: the count of calls by a time, and the command on a tiny suite."""

import json
from pathlib import Path

import pytest
import tiny_npbench

from benchmarks import warmup, warmup_worker


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tiny_npbench.written(tmp_path)


def test_calls_by_a_time() -> None:
    assert warmup.done_by(1.0, 0.0, [0.5, 0.5, 0.5]) == 2
    assert warmup.done_by(1.0, 0.75, [0.5, 0.5, 0.5]) == 0.5
    assert warmup.done_by(1.0, 2.0, [0.5, 0.5, 0.5]) == 0
    assert warmup.done_by(1.0, 0.25, [3.0]) == 0.25
    assert warmup.done_by(4.0, 0.5, [0.25] * 2) == 8  # as if it went on so


def test_a_process_calls_and_compares(suite: Path) -> None:
    told = warmup_worker.times(suite, "halve", "S", "dcarray", "numpy", 0.05)
    assert told["wrong"] == "" and told["before"] >= 0 and len(told["times"]) >= 1
    told = warmup_worker.times(suite, "halve", "S", "numpy", "numpy", 0.0)
    assert told["wrong"] == "" and len(told["times"]) == 1


def test_the_command(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "MARKS", (0.1, 0.3))
    monkeypatch.setattr(warmup, "_BASE", 0.1)
    out, docs = suite / "out.json", suite / "page.md"
    options = ["--npbench", str(suite), "--size", "S", "--rounds", "1"]
    assert warmup.main(["halve", *options, "--json", str(out), "--docs", str(docs)]) == 0
    assert "dcarray, geometric means of 1 kernels: 0.1 s: " in capsys.readouterr().out
    told = json.loads(out.read_text())["kernels"]["halve"]["dcarray"]
    assert len(told["work"]) == 2 and min(told["work"]) >= 0 and told["version"] == "numpy"
    assert docs.read_text().count("\nhalve ") == 1
    assert warmup.main(["broken", *options]) == 1
    assert "not today" in capsys.readouterr().out


def test_peers_that_are_not_installed(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(warmup, "_best", lambda bench, args, name: {"wrong": "not run"})
    assert warmup.main(["halve", "--npbench", str(suite), "--size", "S", "--peers"]) == 1
    said = capsys.readouterr().out
    assert "left out: jax is not installed\nleft out: numba is not installed" in said


def test_the_version_that_did_most_is_taken(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "numba_n": {"wrong": "", "work": [3.0, 4.0]},
        "numba_np": {"wrong": "", "work": [1.0, 9.0]},
        "numba_npr": {"wrong": "no"},
    }
    monkeypatch.setattr(warmup, "_work", lambda bench, args, name, ending: told[ending])

    class Bench:
        @staticmethod
        def endings(name: str) -> list[str]:
            return list(told) if name == "numba" else []

    assert warmup._best(Bench, None, "numba") is told["numba_np"]  # type: ignore[arg-type]
    assert warmup._best(Bench, None, "jax") == {"wrong": "the checkout has no version"}  # type: ignore[arg-type]
    del told["numba_n"], told["numba_np"]
    assert warmup._best(Bench, None, "numba") == {"wrong": "no"}  # type: ignore[arg-type]


def test_bad_input(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--npbench", str(suite), "--rounds", "0"], ["--npbench", str(suite), "no such"]):
        with pytest.raises(SystemExit):
            warmup.main(given)
    said = capsys.readouterr().err
    assert "at least one" in said and "no benchmark has 'no such' in its name" in said
