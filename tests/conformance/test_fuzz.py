"""The command that runs random programs: its programs, its judge, its shrinking, its output."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from conformance import fuzz
from conformance.lines import LONG, TABLE
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
        for k in range(400):
            program(k)
    assert seen == {kind.__name__ for kind, _ in (*TABLE, *LONG)}


@pytest.mark.parametrize("layout", ["C", "F", "step", "flip", "inner", "wide", "odd"])
def test_layouts(layout: str) -> None:
    for shape in ((), (0,), (3,), (2, 3)):
        a = data("f8", shape, 5, layout)
        assert type(a) is np.ndarray and a.shape == shape and a.dtype == "f8"
    assert data("f8", (2, 3), 5, layout).flags.writeable == (layout != "wide")
    if layout != "wide":
        np.testing.assert_array_equal(data("f8", (2, 3), 5, layout), data("f8", (2, 3), 5))


@pytest.mark.parametrize(("body", "said"), [
    ("v1 = v0 + wrong", "v1 is np.float64"),
    ("v1 = (v0 + wrong).astype('f4') if wrong else v0", "v1 is float32"),
    ("1 / (1 - wrong)", "ZeroDivisionError, not nothing raised"),
    ("v1 = 1 / (1 - wrong)", "ZeroDivisionError"),
    ("np.asarray([1.0, wrong * 1j]).astype(float)", "nothing raised"),
    ("v1 = wrong and v0", "v1 is a <class 'dcarray"),
    ("v1 = v0 * (-0.0 if wrong else 0.0)", "v1 is np.float64"),
])  # fmt: skip
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


def test_the_sign_of_a_nan_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance import programs

    usual = programs.scope
    flip = {False: 1.0, True: -1.0}
    monkeypatch.setattr(programs, "scope", lambda p, wrapped: {**usual(p, wrapped), "wrong": flip[wrapped]})
    for line in ("v1 = np.signbit(v0 * {})", "v1 = np.copysign(1, np.where(v0 < 9, {}, v0))"):
        assert difference(Program((line.format("np.copysign(np.nan, wrong)"),), ONE)) is None
        assert difference(Program((line.format("wrong"),), ONE)) is not None


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
def test_a_short_run(mode: str) -> None:
    begun: list[int] = []
    seeds = range(500_000, 500_010)
    assert list(fuzz.run(mode, seeds, begun.append)) == [] and begun == list(seeds)


def test_differences_are_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "program", lambda seed: Program(("v1 = v0", "s0 = type(v0).__module__"), ONE))
    (one, small), (two, text) = fuzz.run("defaults", range(1, 3), shown=1)
    assert (one, two) == (1, 2)
    assert "# number 1, defaults" in small and "print(difference(program))" in small
    assert "v1 = v0" not in small and text.startswith("round 0: s0 is")


def test_a_run_goes_on_behind_what_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []

    def messages(mode: str, seeds: range, shown: int) -> Any:
        parts.append(seeds)
        for k in seeds:
            yield k
            if k == 13:
                return
            if k == 15:
                yield k, "script"
        yield None

    monkeypatch.setattr(fuzz, "messages", messages)
    said: list[str] = []
    outcome = fuzz.supervised("defaults", range(10, 20), 5, said.append)
    assert parts == [range(10, 15), range(14, 19), range(19, 20)]
    assert (outcome.programs, outcome.differ, outcome.crashed) == (10, [15], [13])
    assert "number 13" in said[0] and "script" in said[1]
    assert "10 programs" in str(outcome) and "1 differ, 1 crashed" in str(outcome)


def test_an_interrupted_run_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def messages(mode: str, seeds: range, shown: int) -> Any:
        yield from seeds[:7]
        raise KeyboardInterrupt

    monkeypatch.setattr(fuzz, "messages", messages)
    assert fuzz.main(["--examples", "20", "--json", str(tmp_path / "counts.json")]) == 1
    assert "stopped" in capsys.readouterr().out
    (one,) = json.loads((tmp_path / "counts.json").read_text())
    assert (one["mode"], one["programs"], one["stopped"]) == ("defaults", 6, True)


def test_a_process_that_ends_is_noticed() -> None:
    assert list(fuzz.messages("no such mode", range(3), 0)) == [0]


def test_the_command(tmp_path: Path) -> None:
    counts, docs = tmp_path / "counts.json", tmp_path / "conformance.md"
    counts.write_text(json.dumps([{"mode": "compiled", "programs": 1000, "differ": [5], "crashed": []}]))
    command = [sys.executable, "-m", "conformance.fuzz", "--examples", "5", "--seed", "7"]
    command += ["--json", str(counts), "--docs", str(docs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 runs, 0 differ" in done.stdout
    assert [(o["mode"], o["programs"], o["differ"]) for o in json.loads(counts.read_text())] == [
        ("compiled", 1000, [5]), *((mode, 5, []) for mode in fuzz.MODES),
    ]  # fmt: skip
    text = docs.read_text()
    assert "## Fuzzing" in text and "| defaults | none | 5 | 0 | 0 |" in text and "| 1,005 | 1 | 0 |" in text
    with pytest.raises(SystemExit):
        fuzz.main(["--examples", "0"])
    assert type(dc.ndarray) is type
