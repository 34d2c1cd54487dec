"""Random source programs and those written by hand: how they are compared, and that they agree."""

import ast
from pathlib import Path
from typing import Any

import pytest

from conformance.whole_programs import __main__ as command
from conformance.whole_programs.cases import CASES
from conformance.whole_programs.more_scenes import ALL_SCENES
from conformance.whole_programs.running import Runs, difference_of
from conformance.whole_programs.writer import HEAD, kinds, program

WAYS = ("run", "decorated", "module")
SEEDS = 12


def _parameters() -> list[Any]:
    found = [(name, way, CASES[name]) for name in CASES for way in WAYS]
    found += [(f"program {seed}", WAYS[seed % 3], program(seed)) for seed in range(SEEDS)]
    return [pytest.param(way, source, id=f"{name} | {way}") for name, way, source in found]


@pytest.mark.parametrize(("way", "source"), _parameters())
def test_accelerated_programs_do_as_they_are_written(way: str, source: str) -> None:
    assert list(Runs().differences(source, (way, "eager"))) == []


def test_every_kind_of_scene_is_written_and_is_python() -> None:
    seen = set()
    for seed in range(400):
        ast.parse(program(seed))
        seen |= set(kinds(seed))
    assert seen == set(ALL_SCENES)


def test_differences() -> None:
    assert difference_of("a\nb\n", "a\nb\n") is None
    assert difference_of("a\nb\n", "a\n") == "(nothing)\n    instead of\nb"
    assert difference_of("a ~1.0~", "a ~1.0000000000001~") is None
    assert difference_of("a ~1.0~", "a ~1.00001~") is not None
    assert difference_of("a ~1.0~ b", "a ~1.0~ c") is not None
    wrapped = "dcarray.api.array.ndarray f8"
    assert difference_of("numpy.ndarray f8", wrapped) is None
    assert difference_of("numpy.ndarray f8", wrapped, types=True) is not None


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "line", ["print({})", "if {}: raise KeyError('no')", "sys.exit(3 * {})", "if {}: os._exit(4)"]
)
def test_a_wrong_result_an_exception_and_an_end_are_seen(whole: bool, line: str) -> None:
    for wrong, count in (("('no such module' in sys.modules)", 0), ("('dcarray' in sys.modules)", 1)):
        source = f"{HEAD}\nimport os\n\n{line.format(wrong)}\n"
        assert len(list(Runs(whole=whole).differences(source, ("run", "eager")))) == count


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def plain(seed: int, only: str | None) -> str:
        return f"{HEAD}\n\nx = {seed}\nprint({'type(np.ones(1)).__module__' if seed == 8 else 'x'})\n"

    monkeypatch.setattr(command, "program", plain)
    arguments = ["--examples", "2", "--seed", "7", "--mode", "run", "--jit", "eager", "--save", str(tmp_path)]
    status = command.main(arguments)
    said = capsys.readouterr().out
    assert status == ("program 8" in said)  # where arrays are NumPy's own nothing differs
    assert "2 programs" in said and "program 7" not in said
    if status:
        assert "print(type(np.ones(1)).__module__)" in said and "x = 8" not in said
        assert [file.name for file in tmp_path.iterdir()] == ["program_8.py"]
