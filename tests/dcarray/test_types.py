"""Editors and mypy: NumPy's names have NumPy's types, and decorated functions keep their signatures."""

import inspect
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.names import names

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".mypy_cache"
MODULES = ("char", "emath", "fft", "linalg", "random", "strings")
OURS = {"asarray", "info"}  # wider than NumPy's, and another function
UNTYPED = {  # by NumPy
    "fft.test", "linalg.test", "random.get_bit_generator", "random.set_bit_generator", "random.test",
}  # fmt: skip

PROGRAM = """
import numpy as np
import dcarray as dc

N = dc.symbol("N")

@dc.accelerate
def step(x: np.ndarray, n: int = 3) -> np.ndarray:
    return x * n

@dc.program
def norm(x: dc.types.float64[N, N], a: float) -> float:
    return float(x[0, 0] * a)

@dc.accelerate
class Model:
    def size(self) -> int:
        return 3

def declared() -> np.ndarray:
    return np.ones(3)

a = np.ones((2, 3))
x: dc.ndarray = dc.zeros(3)
dc.asarray(a, copy=True, device="cpu")
step(x, n=2)
norm(x, a=2.0)
norm.compile()(x, 1.0)
"""
REVEALED = {
    "norm(x, 2.0)": "float",
    "norm.compile()(x, 1.0)": "float",
    "Model().size()": "int",
    "dc.asarray([1])": "numpy.ndarray[Any, Any]",
    "dc.report().loops": "int",
    "dc.pmap(str, range(3))": "list[Any] | None",
}
SAME = {"step(x)": "declared()", "dc.asarray(a)": "a"}
MISTAKES = {
    "step('a')": "arg-type",
    "step(x, k=2)": "call-arg",
    "norm(x)": "call-arg",
    "norm(x, 'a')": "arg-type",
    "norm(x, b=2.0)": "call-arg",
    "dc.zeroes(3)": "attr-defined",
    "dc.asarray(a, copy='no')": "call-overload",
}


def _numpys_names() -> list[str]:
    found = [name for name in names() if hasattr(np, name) and not name.startswith("_")]
    for module in MODULES:
        ours, theirs = getattr(dc, module), getattr(np, module)
        assert isinstance(ours, ModuleType)
        found += [f"{module}.{n}" for n in dir(theirs) if not n.startswith("_") and hasattr(ours, n)]
    return sorted({*found} - OURS - UNTYPED)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, str], list[str]]:
    """What mypy says of each line of a program, and these lines."""
    if find_spec("mypy") is None:
        pytest.skip("there is no mypy")
    if not list(CACHE.glob("3.*/*")):
        pytest.skip("mypy has no cache: `make lint` makes it, without which this takes minutes")
    lines = PROGRAM.splitlines()
    both = [f"{module}.{name}" for name in _numpys_names() for module in ("np", "dc")]
    for expression in [*REVEALED, *SAME, *SAME.values(), *both]:
        lines.append(f"reveal_type({expression})")
    lines += MISTAKES
    folder = tmp_path_factory.mktemp("types")
    path = folder / "typed_program.py"
    path.write_text("\n".join(lines))
    shutil.copytree(CACHE, folder / "cache")  # another run may use it at the same time
    options = ["--no-pretty", "--no-error-summary", "--cache-dir", str(folder / "cache")]
    run = python("-m", "mypy", *options, path, status=None, cwd=ROOT)
    assert not run.stderr
    found: dict[int, str] = {}
    for line in run.stdout.splitlines():
        match = re.fullmatch(rf"{re.escape(str(path))}:(\d+): \w+: (.*)", line)
        if match is None:
            continue  # of another file, whose mistakes `make lint` finds
        number = int(match[1]) - 1
        found[number] = f"{found[number]}\n{match[2]}" if number in found else match[2]
    return found, lines


def test_names_have_numpys_types(said: tuple[dict[int, str], list[str]]) -> None:
    found, lines = said
    of = {lines[number].removeprefix("reveal_type(")[:-1]: text for number, text in found.items()}
    checked = _numpys_names()
    assert len(checked) > 600
    for name in checked:
        assert of[f"dc.{name}"] == of[f"np.{name}"], name
        assert of[f"dc.{name}"].startswith("Revealed type is "), (name, of[f"dc.{name}"])


def test_types_of_our_own_functions(said: tuple[dict[int, str], list[str]]) -> None:
    found, lines = said
    for expression, kind in REVEALED.items():
        assert found[lines.index(f"reveal_type({expression})")] == f'Revealed type is "{kind}"', expression
    for expression, other in SAME.items():
        of_both = [found[lines.index(f"reveal_type({e})")] for e in (expression, other)]
        assert of_both[0] == of_both[1], expression


def test_mistakes_are_found_and_nothing_else(said: tuple[dict[int, str], list[str]]) -> None:
    found, lines = said
    for statement, code in MISTAKES.items():
        assert f"[{code}]" in found.pop(lines.index(statement), ""), statement
    assert [(lines[n], text) for n, text in found.items() if not text.startswith("Revealed type is ")] == []


def test_signatures_are_kept_when_the_program_runs() -> None:
    def f(x: np.ndarray, n: int = 3) -> np.ndarray:
        return x * n

    for decorate in (dc.accelerate, dc.program):
        assert inspect.signature(decorate(f)) == inspect.signature(f)
        assert inspect.get_annotations(decorate(f)) == f.__annotations__
