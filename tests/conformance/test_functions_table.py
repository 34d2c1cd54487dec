"""Every public function of NumPy on wrapped arrays, all of it recorded and interpreted."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import dcarray as dc
from conformance import argument_forms, functions

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    with np.errstate(all="ignore"):
        return functions.groups(tmp_path_factory.mktemp("lines"))


@pytest.mark.skipif(not np.__version__.startswith("2.4."), reason="the lines are of the names of NumPy 2.4")
def test_every_public_function_has_a_line(lines: dict[str, list[str]]) -> None:
    assert not functions.missing(line for some in lines.values() for line in some)


def test_every_line_does_what_numpy_does(lines: dict[str, list[str]], tmp_path: Path) -> None:
    with np.errstate(all="ignore"):
        found = [functions.measure(line, tmp_path) for some in lines.values() for line in some]
    assert [o for o in found if o.kind in ("wrong", "unsupported")] == []


@pytest.mark.parametrize(("line", "kind"), [
    ("np.sqrt(x)", "native"), ("np.transpose(x)", "native"), ("np.sort(x)", "numpy"),
    ("np.arange(20)", "at once"), ("np.frexp(x)", "fallback"), ("np.nonesuch(x)", "unsupported"),
])  # fmt: skip
def test_kinds(line: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "unsupported":
        monkeypatch.setattr(np, "nonesuch", abs, raising=False)
        monkeypatch.setattr("dcarray.nonesuch", None, raising=False)
    assert functions.measure(line, tmp_path).kind == kind


def test_what_differs_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "nonesuch", lambda a: a + 1, raising=False)
    monkeypatch.setattr("dcarray.nonesuch", lambda a: a + 2, raising=False)
    found = functions.measure("np.nonesuch(x)", tmp_path)
    assert found.kind == "wrong" and "in place of" in found.said


@pytest.mark.parametrize("size", ["small", "recorded", "large"])
@pytest.mark.parametrize("line", [
    "np.transpose(v, 0)", "np.transpose(x, 0)", "np.transpose(x, (0, 0))", "np.transpose(x, ())",
    "x.transpose(axes=(1, 0))", "x.reshape()", "x.reshape(True, order='F')", "x.swapaxes(0)",
    "x.squeeze((0, 5))", "x.astype(nonesuch=1)", "np.sum(x, axis=0, keepdims='a')",
    "np.var(x, axis=0, keepdims=1.5)", "np.ptp(x, axis=0, keepdims=())",
    "np.add.reduce(array=x, axis=0)", "np.maximum.accumulate(array=x)", "np.cumsum(x, axis=True)",
    "np.clip(x, v, v, 0)", "np.absolute(x, casting=v)", "np.copyto(x, y, casting=x[:, 0])",
    "np.moveaxis(t, (0, 0), (1, 2))", "np.split(x, x)", "np.expand_dims(x, 'a')", "np.pad(x, 2, k)",
])  # fmt: skip
def test_odd_arguments_are_numpys(line: str, size: str) -> None:
    assert argument_forms.difference(line, size) == ""


def test_a_state_of_an_array() -> None:
    for x in np.arange(3), dc.arange(3), dc.zeros(20_000):
        y = x[:2].copy()
        y.__setstate__(x.__reduce__()[2])
        assert np.array_equal(y, x) and y.dtype == x.dtype
        assert type(pickle.loads(pickle.dumps(x))) is type(x)


def test_an_error_of_the_callers_function_is_raised_once() -> None:
    calls = []

    def bad(part: object) -> None:
        calls.append(part)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        np.apply_along_axis(bad, 0, dc.ones((20_000, 1)))
    assert len(calls) == 1
