"""Every call that `python -m benchmarks calls` times means the same on plain and on wrapped arrays."""

import ast
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from benchmarks.calls import ACCELERATED, CALLS, arrays
from benchmarks.sweep import job, main, timed, wrapped


def outcome(text: str, given: dict[str, Any], numpy: Any = np) -> Any:
    """The value of an expression, or what a statement makes of its first array."""
    scope = {"np": numpy, **given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text).body[0]
        if isinstance(tree, ast.Expr) and not text.startswith(("np.put", "np.place", "np.copyto", "x.fill")):
            return eval(text, scope)
        exec(text, scope)
    first = next(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in given)
    return given[first]


def same(got: Any, want: Any) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
    elif isinstance(want, (np.ndarray, np.generic)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-9)
        assert np.asarray(got).dtype == want.dtype
    else:
        assert got == want


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("group", CALLS)
def test_calls_mean_the_same(group: str, below: int) -> None:
    skipped = ("np.empty_like(x)", "np.empty(n)")  # whatever is in the memory
    numpy = dc if group == ACCELERATED else np
    with dc.options(eager_below=below, jit="off"):
        for text in CALLS[group]:
            if text not in skipped:
                plain = arrays(30)
                same(outcome(text, wrapped(arrays(30)), numpy), outcome(text, plain))


def test_a_job_does_the_call_so_often() -> None:
    x = np.zeros(4)
    job("x += 1.0", {"x": x}, False)(5)
    np.testing.assert_array_equal(x, np.full(4, 5.0))
    wrapped = dc.asarray(np.zeros(20_000))
    job("x += 1.0", {"x": wrapped}, True)(3)
    assert float(wrapped[7]) == 3.0


def test_a_call_is_timed_on_both() -> None:
    found = timed("operators", "x + y", 10, 1)
    assert found.ratio > 0 and found.numpy > 0 and found.call == "x + y"


def test_a_document_has_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = tmp_path / "page.md"
    assert main(["--only", "attributes", "--sizes", "10", "--rounds", "1", "--docs", str(docs)]) == 0
    printed = capsys.readouterr().out
    assert "n = 10: " in printed
    section = docs.read_text().split("## Single calls\n")[1]
    assert [line.rstrip() for line in printed.splitlines()] == section.split("```")[1].splitlines()[1:]


def test_a_group_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "produkts"])
    assert "no group has 'produkts' in its name: operators, in place," in capsys.readouterr().err
