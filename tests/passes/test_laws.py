"""The table of laws: passes apply each, both sides are the same in NumPy, and the documents have it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.ir import interp
from dcarray.ir.nodes import Region
from dcarray.ir.parse import parse
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.laws import LAWS, NO_LAWS, Law, NoLaw, table
from dcarray.lowering.gpu.cuda.target import TARGET as CUDA

PASSES = {one.name: one for one in (*CPU.early, *CPU.passes, *CPU.final, *CUDA.pipeline(1).final)}


def memory_of(region: Region) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {a.name: rng.random(a.shape).astype(a.dtype) for a in region.arrays if a.role in ("in", "inout")}


def made(code: str, names: dict[str, Any]) -> Any:
    """What NumPy's code makes."""
    scope = {"np": np, **{name: x.copy() for name, x in names.items()}}
    exec(code, scope)
    return scope["r"]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_laws(law: Law, check: Callable[..., Log]) -> None:
    check(PASSES[law.by], law.region, law.rewritten)
    region = parse(law.region)
    memory = memory_of(region)
    wanted = made(law.before, memory)
    others = [
        made(law.after, memory),
        *(
            interp.run(r, {name: x.copy() for name, x in memory.items()})["r"]
            for r in (region, parse(law.rewritten), CPU.run(region))
        ),
    ]
    for other in others:
        assert np.shape(other) == np.shape(wanted) and other.dtype == wanted.dtype
        if law.keeps == "bits":
            np.testing.assert_array_equal(other, wanted)
        else:
            np.testing.assert_allclose(other, wanted, rtol=1e-13)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_laws_in_compiled_code(law: Law) -> None:
    region = parse(law.region)
    memory = memory_of(region)
    lines = "\n    ".join(law.before.splitlines())
    f = written(f"import numpy as np\ndef f({', '.join(memory)}):\n    {lines}\n    return r")
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        got = dc.accelerate(f)(*[x.copy() for x in memory.values()])
    np.testing.assert_allclose(got, made(law.before, memory), rtol=1e-13)


@pytest.mark.parametrize("no", NO_LAWS, ids=lambda no: no.left)
def test_equations_that_are_no_laws(no: NoLaw) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(no.example, scope)
    with np.errstate(all="ignore"):
        left, right = eval(no.left, scope), eval(no.right, scope)
        assert not (
            np.array_equal(left, right, equal_nan=True)
            and np.array_equal(np.signbit(left), np.signbit(right))
        )
        wrapped = {k: dc.asarray(v) if isinstance(v, np.ndarray) else v for k, v in scope.items()}
        with dc.options(jit="eager", eager_below=0, cache_dir=None):
            got = np.asarray(eval(no.left, wrapped))
    np.testing.assert_array_equal(got, left)
    np.testing.assert_array_equal(np.signbit(np.real(got)), np.signbit(np.real(left)))


def test_the_documents_have_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "laws.md"
    assert table() in page.read_text(), "put what dcarray.ir.passes.laws.table() gives into docs/laws.md"
