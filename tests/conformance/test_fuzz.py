"""The command that runs random programs: its programs, its judge, its shrinking, its output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from conformance import fuzz
from conformance.lines import TABLE
from conformance.programs import Program, data, difference, shrunk
from conformance.writer import Writer, program

ROOT = Path(__file__).resolve().parents[2]
ONE = (("v0 = data('f8', (4,), 1)",),)


def test_programs_are_the_same_every_time() -> None:
    assert [program(k) for k in range(20)] == [program(k) for k in range(20)]
    assert len({program(k).body for k in range(20)}) == 20


def test_every_kind_of_line_is_written() -> None:
    seen: set[str] = set()
    write = Writer.write

    def noted(self: Writer, text: str, *rest: Any, **more: Any) -> bool:
        done = write(self, text, *rest, **more)
        if done:
            seen.add(sys._getframe(1).f_code.co_name)
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "write", noted)
        for k in range(150):
            program(k)
    assert seen == {kind.__name__ for kind, _ in TABLE}


@pytest.mark.parametrize("layout", ["C", "F", "step", "flip", "inner", "wide", "odd"])
def test_layouts(layout: str) -> None:
    for shape in ((), (0,), (3,), (2, 3)):
        a = data("f8", shape, 5, layout)
        assert type(a) is np.ndarray and a.shape == shape and a.dtype == "f8"
    assert data("f8", (2, 3), 5, layout).flags.writeable == (layout != "wide")
    if layout != "wide":
        np.testing.assert_array_equal(data("f8", (2, 3), 5, layout), data("f8", (2, 3), 5))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("v1 = v0 + wrong", "v1 is np.float64"),
        ("v1 = (v0 + wrong).astype('f4') if wrong else v0", "v1 is float32"),
        ("1 / (1 - wrong)", "ZeroDivisionError, not nothing raised"),
        ("v1 = 1 / (1 - wrong)", "ZeroDivisionError"),
        ("np.asarray([1.0, wrong * 1j]).astype(float)", "nothing raised"),
        ("v1 = wrong and v0", "v1 is a <class 'dcarray"),
        ("v1 = v0 * (-0.0 if wrong else 0.0)", "v1 is np.float64"),
    ],
)
def test_the_judge_sees_differences(body: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance import programs

    usual = programs.scope
    monkeypatch.setattr(programs, "scope", lambda p, wrapped: {**usual(p, wrapped), "wrong": int(wrapped)})
    if "1j" in body:
        body = "np.asarray([1.0, 1j if wrong else 1]).astype(float)"
        said = "ComplexWarning"
    text = difference(Program((body,), ONE))
    assert text is not None and said in text
    assert difference(Program((body.replace("wrong", "0"),), ONE)) is None


def test_a_rough_value_may_differ_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance import programs

    usual = programs.scope
    monkeypatch.setattr(programs, "scope", lambda p, wrapped: {**usual(p, wrapped), "wrong": 1e-15 * wrapped})
    body = ("v1 = np.abs(v0) + 1 + wrong",)
    assert difference(Program(body, ONE)) is not None
    assert difference(Program(body, ONE, frozenset({"v1"}))) is None
    assert difference(Program(("v1 = np.abs(v0) + 1 + wrong * 1e6",), ONE, frozenset({"v1"}))) is not None


def test_shrinking_and_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance import programs

    usual = programs.scope
    monkeypatch.setattr(programs, "scope", lambda p, wrapped: {**usual(p, wrapped), "wrong": int(wrapped)})
    inputs = ("v0 = data('f8', (4,), 1)", "v9 = data('i4', (2,), 1)")
    long = Program(("v1 = v0 * 2", "v2 = v1 + wrong", "v3 = v9[:1]"), (inputs, inputs), frozenset({"v9"}))
    small = shrunk(long)
    assert (
        small.body == ("v1 = v0 * 2", "v2 = v1 + wrong")
        or small.body == ("v2 = v1 + wrong",)
        or len(small.body) == 1
    )
    assert len(small.rounds) == 1
    text = small.text(eager_below=0)
    names: dict[str, Any] = {}
    exec(text.replace("print(", "found = ("), names)
    assert names["program"] == Program(small.body, small.rounds) and names["found"] is not None


@pytest.mark.parametrize("mode", list(fuzz.MODES))
def test_a_short_run(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.run(mode, range(500_000, 500_010)) == []
    assert "10 programs" in capsys.readouterr().out


def test_differences_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "program", lambda seed: Program(("s0 = type(v0).__module__",), ONE))
    assert fuzz.main(["--examples", "2", "--mode", "defaults"]) == 1
    said = capsys.readouterr().out
    assert (
        "# number 1, defaults" in said and "print(difference(program))" in said and "2 runs, 2 differ" in said
    )


def test_the_command() -> None:
    command = [sys.executable, "-m", "conformance.fuzz", "--examples", "5", "--seed", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 runs, 0 differ" in done.stdout
    with pytest.raises(SystemExit):
        fuzz.main(["--examples", "0"])
    assert type(dc.ndarray) is type
