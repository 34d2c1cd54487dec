"""The command that runs random programs: its programs, its judge, its shrinking, its output."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dcarray as dc
from conformance import fuzz
from conformance.lines import LONG, TABLE
from conformance.programs import Program, difference, shrunk
from conformance.writer import Writer, program

ROOT = Path(__file__).resolve().parents[2]
ONE = (("v0 = data('f8', (4,), 1)",),)


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
