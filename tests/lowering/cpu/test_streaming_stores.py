"""Stores past the caches: which, what becomes of them in LLVM's text, and that they store the same."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.ir import dims
from dcarray.ir.text import parse
from dcarray.lowering.cpu import caches
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.passes.nontemporal_stores import use_streaming_stores
from dcarray.lowering.cpu.schedules import scheduler
from dcarray.lowering.kernel.text import kernel_text

MARK = " nontemporal"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every array is large enough."""
    monkeypatch.setattr(caches, "streaming_threshold", lambda: 1)
    with dc.options(jit="eager", eager_below=0):
        yield


def kernel(body: str, rows: int = 4000, columns: int = 4000) -> Any:
    region = parse(f"region() {{ in x: f64[{rows},{columns}];  out y: f64[{rows},{columns}]\n{body}\n}}")
    return scheduler.schedule(region.body[0], region)[0]


POINT = f"y[i,j] = add(x[i,j], 1.0) for i<{4000}, j<{4000}"


def test_what_is_written_once_and_large_goes_past_the_caches() -> None:
    assert (
        32 << 20 <= caches.streaming_threshold() <= 96 << 20
        or caches.streaming_threshold() == caches.sizes()[2]
    )
    assert kernel_text(kernel(POINT)).count(MARK) == 1


@pytest.mark.parametrize(("body", "size"), [
    ("y[i,j] = add(x[i,j], 1.0) for i<40, j<40", 40),
    ("y[i,j] = add(y[i,j], x[i,j]) for i<4000, j<4000", 4000),  # its line is there already
    ("y[j,i] = add(x[i,j], y[j,i]) for i<4000, j<4000", 4000),
    ("y[i,2*j] = add(x[i,j], 1.0) for i<4000, j<2000", 4000),
    ("y[i,j] = add(x[i,j], 1.0) for i<4000, j<40", 4000),  # short rows
])  # fmt: skip
def test_what_does_not(body: str, size: int) -> None:
    assert MARK not in kernel_text(kernel(body, size, size))


def test_sizes_that_vary() -> None:
    region = parse("region(N: int>=1) { in x: f64[N];  out y: f64[N]\ny[i] = add(x[i], 1.0) for i<N\n}")
    for size, found in ((20_000_000, 1), (2_000_000, 0)):
        with dims.Guards({"N": size}) as guards:
            hinted = replace(region, symbols=(replace(region.symbols[0], hint=size),))
            assert kernel_text(scheduler.schedule(region.body[0], hinted)[0]).count(MARK) == found
        assert guards.holds({"N": size}) and guards.holds({"N": 1000}) == (not found)


def test_llvm_text() -> None:
    machine = engine.machine()
    if not machine.nontemporal:
        pytest.skip("only x86 has stores past the caches here")
    made = engine.optimised(emit(kernel(POINT), machine))
    past = [line for line in made.split("\n") if "!nontemporal" in line]
    assert past and all(" store <" in line for line in past)
    assert made.count("call void @llvm.x86.sse.sfence()") >= 1
    assert "movnt" in engine.assembly(emit(kernel(POINT), machine))
    plain = emit(kernel(POINT), engine.Machine(512))
    assert "sfence" not in plain and use_streaming_stores(plain) is plain


KINDS = ("f8", "f4", "f2", "i8", "i4", "i2", "u1", "?", "c16", "c8")


@pytest.mark.usefixtures("always")
@settings(deadline=None, max_examples=16)
@given(st.data())
def test_the_same_is_stored(data: st.DataObject) -> None:
    # The fixture is the same for all examples, as it changes nothing between them.
    kind = np.dtype(data.draw(st.sampled_from(KINDS)))
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 700))
    first, left = data.draw(st.integers(0, 70)), data.draw(st.integers(0, min(9, columns - 1)))
    flat = (np.arange(6 * 800) % 100).astype(kind)
    memory, expected = np.zeros(6 * 800 + 80, kind), np.zeros(6 * 800 + 80, kind)
    operand = flat[: rows * columns].reshape(rows, columns)

    def program(out: Any, x: Any) -> None:
        out[:] = x * x if kind.kind != "b" else x | ~x
        out[:, left:] = np.where(x[:, left:] > x[:, : columns - left], x[:, left:], x[:, : columns - left])

    with np.errstate(all="ignore"):
        whole = memory[first : first + rows * columns].reshape(rows, columns)
        program(dc.asarray(whole), dc.asarray(operand))
        dc.evaluate()
        program(expected[first : first + rows * columns].reshape(rows, columns), operand)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.usefixtures("always")
def test_several_threads_and_results() -> None:
    x = np.random.default_rng(0).random((300, 1001))
    with dc.options(threads=2):
        one, two = dc.evaluate(*(f(dc.asarray(x)) for f in (lambda a: a * 2.0, lambda a: a[:, 1:] - 1.0)))
    np.testing.assert_array_equal(np.asarray(one), x * 2.0)
    np.testing.assert_array_equal(np.asarray(two), x[:, 1:] - 1.0)
