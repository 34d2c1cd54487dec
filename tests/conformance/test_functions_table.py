"""Every public function of NumPy on wrapped arrays, all of it recorded and interpreted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conformance import functions

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


@pytest.mark.parametrize(("line", "name"), [
    ("np.linalg.norm(x, axis=0)", "linalg.norm"),
    ("np.add.reduce(x)", "add.reduce"),
    ("x[1:].base.shape", "ndarray.base"),
    ("np.save(file, x); file.getvalue()", "save"),
    ("[float(a) for a in np.nditer(v)]", "nditer"),
])  # fmt: skip
def test_names(line: str, name: str) -> None:
    assert functions.name_of(line) == name
