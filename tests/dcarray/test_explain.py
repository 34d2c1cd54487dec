"""``dc.explain``: what it says must be what runs, and asking must not run it."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc


def _stencil(n: int = 200) -> Any:
    a, b = dc.asarray(np.random.default_rng(1).random((n, n))), dc.asarray(np.zeros((n, n)))
    b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
    return b


def test_explaining_keeps_an_array_lazy() -> None:
    with dc.options(eager_below=0):
        b = _stencil()
        before = dc.report().flushes
        first, second = dc.explain(b), dc.explain(b)
        assert dc.report().flushes == before
        assert str(first) == str(second)
        assert float(b.sum()) > 0
        assert dc.explain(b).regions == ()


def test_a_stencil_is_one_kernel_with_the_users_lines() -> None:
    with dc.options(eager_below=0):
        (view,) = dc.explain(_stencil()).regions
    assert len(view.region.body) >= 5
    (kernel,) = view.kernels
    assert kernel.kind == "kernel"
    assert kernel.where.startswith("tests") and "test_explain.py:" in kernel.where
    assert "for (" in kernel.listing
    assert "0.2" in kernel.formula[0]
    assert view.moved < view.moved_unfused / 4


def test_text_names_passes_regions_and_kernels() -> None:
    with dc.options(eager_below=0):
        text = str(dc.explain(_stencil()))
    for expected in ("recorded", "pass fuse", "region", "kernel 1", "test_explain.py:", "operations"):
        assert expected in text


def test_functions_show_every_region_they_run() -> None:
    def work(x: Any) -> Any:
        y = x * 2 + 1
        if float(y.sum()) > 0:  # needs a value: the first region ends here
            y = np.sqrt(y)
        return y

    with dc.options(eager_below=0):
        shown = dc.explain(work, dc.asarray(np.ones(1000)))
    assert len(shown.regions) == 2
    assert [k.kind for k in shown.kernels] == ["kernel"] * len(shown.kernels)


def test_llvm_and_assembly_on_request() -> None:
    with dc.options(eager_below=0):
        shown = dc.explain(_stencil(), llvm=True, asm=True)
    assert "define " in shown.llvm
    assert "ret" in shown.asm
    assert "define " in str(shown)


def test_saving(tmp_path: Path) -> None:
    with dc.options(eager_below=0):
        shown = dc.explain(_stencil())
    ET.parse(shown.save(tmp_path / "x.svg"))
    assert "<svg" in shown.save(tmp_path / "x.html").read_text()
    assert "kernel 1" in shown.save(tmp_path / "x.txt").read_text()
    with pytest.raises(ValueError, match=r"\.svg"):
        shown.save(tmp_path / "x.png")
    assert "<svg" in shown._repr_html_()


def test_nothing_pending_and_bad_arguments() -> None:
    assert "nothing is pending" in str(dc.explain(dc.asarray(np.ones(3))))
    with pytest.raises(TypeError, match="ndarray or a function"):
        dc.explain(3)


def _chain(x: Any) -> Any:
    return np.exp(-x) * 2 + np.sqrt(x * x + 1)


def _small(x: Any) -> Any:
    return x[:4, :4] * 2 + 1


def _in_place(x: Any) -> Any:
    with np.errstate(all="raise"):
        x[1:-1, 1:-1] = np.sqrt(x[1:-1, 1:-1] + x[:-2, 1:-1]) + x[2:, 1:-1]
        dc.evaluate(x)


def _reduction(x: Any) -> Any:
    return (x * x - x).sum(axis=0)


def _product(x: Any) -> Any:
    return (x + 1) @ x - 1


@dc.accelerate
def _loop(x: Any) -> None:
    for k in range(1, x.shape[0]):
        x[k] = x[k - 1] * 0.5 + x[k]


@dc.accelerate
def _search(x: Any) -> None:
    n = 0
    while x[n, 0] > 0 and n < 100:
        x[n] = np.sqrt(x[n]) - 1
        n += 1


@pytest.mark.parametrize("fastmath", [False, True])
@pytest.mark.parametrize("run", [_chain, _small, _in_place, _reduction, _product, _loop, _search])
def test_kernels_are_those_of_the_plan_that_runs(run: Any, fastmath: bool) -> None:
    """An array of another shape is explained, too: its plan is symbolic."""
    from dcarray.lowering import compilation as plans
    from dcarray.lowering.targets import get

    made: list[list[str]] = []
    compile_region = plans.compile_region

    def compiled(*args: Any, **options: Any) -> Any:
        plan = compile_region(*args, **options)
        made.append([get("cpu").emit(step.kernel) for step in plan.kernels])
        return plan

    with (
        pytest.MonkeyPatch.context() as patch,
        dc.options(jit="eager", eager_below=0, fastmath=fastmath, threads=2),
    ):
        patch.setattr(plans, "compile_region", compiled)
        dc.evaluate()
        for rows in (200, 300):
            x = np.random.default_rng(0).random((rows, rows)) + 1
            made.clear()
            dc.evaluate(run(dc.asarray(x.copy())))
            ran = [text for texts in made for text in texts]
            shown = dc.explain(run, dc.asarray(x.copy()))
            got = [get("cpu").emit(view.kernel) for view in shown.kernels if view.kernel is not None]
            assert got == ran != []
