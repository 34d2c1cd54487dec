"""Prefetch distances of loads, and the prefetches in LLVM's text that come of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dcarray as dc
from dcarray.ir.text import parse
from dcarray.lowering.cpu.kernel_passes import prefetch_distances as prefetch
from dcarray.lowering.cpu.kernel_passes import unroll_and_jam
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.passes.prefetch_calls import insert_prefetches
from dcarray.lowering.cpu.schedules import scheduler
from dcarray.lowering.kernel.nodes import Elem, Kernel, affine
from dcarray.lowering.kernel.text import kernel_text

PRODUCT = """region() {
  in A: f64[N, 1000];  in x: f64[1000];  in r: f64[N];  out y: f64[N];  out z: f64[N];  out w: f64[1000]
  BODY
}"""
ONE = "y[i] add= multiply(A[i,j], x[j]) init 0.0 for i<N, j<1000"
ROWS = f"rows 1 {{ {ONE}; z[i] = multiply(y[i], r[i]) for i<N }}"


def kernel(body: str, rows: int = 2000) -> Kernel:
    region = parse(PRODUCT.replace("BODY", body).replace("N", str(rows)))
    return scheduler.schedule(region.body[0], region)[0]


def test_one_loop_asks_along_its_row() -> None:
    found = kernel_text(kernel(ONE))
    assert found.count(f" ahead {prefetch.NEAR // 8}, {prefetch.FAR // 8}]") == unroll_and_jam.WAYS
    assert "p1[i1]" in found  # the vector is in the cache


def test_little_is_not_asked_for() -> None:
    assert " ahead " not in kernel_text(kernel(ONE, rows=500))


def test_several_loops_ask_for_their_share_of_the_next_rows() -> None:
    inner = [
        vector_loop("i1", (load(0), load(1), load(2), load(3))),
        vector_loop("i1", (load(0), load(1), load(2), load(3))),
    ]
    made = prefetch.with_prefetches(tuple(inner), "i0", 4)
    wanted = [[bool(stmt.value.prefetch) for stmt in loop.body] for loop in made]  # type: ignore[union-attr]
    assert wanted == [[True, True, False, False], [False, False, True, True]]
    (first,) = made[0].body[0].value.prefetch  # type: ignore[union-attr]
    assert first == affine(0, unroll_and_jam.Term(4, "n2"))


def vector_loop(var: str, loads: tuple[Elem, ...]) -> unroll_and_jam.For:
    stmts = tuple(unroll_and_jam.Let(f"v{k}", value) for k, value in enumerate(loads))
    return unroll_and_jam.For(var, affine(), (affine(8),), 1, "vector", stmts)


def load(row: int) -> Elem:
    at = affine(
        0,
        unroll_and_jam.Term(1, "n2", "i0"),
        unroll_and_jam.Term(row, "n2"),
        unroll_and_jam.Term(1, None, "i1"),
    )
    return Elem("p0", at, np.dtype("d"))


TEXT = """define internal i32 @body0(ptr %p, i64 %n2) {
entry:
  %a = load <8 x double>, ptr %p, align 8, !llvm.access.group !3
  %b = load <8 x double>, ptr %p, align 8, !llvm.access.group !1
  %c = load double, ptr %p, align 8, !llvm.access.group !3
  store <8 x double> %a, ptr %p, align 8
  ret i32 0
}

!dcarray.ahead = !{!4, !5}
!1 = distinct !{}
!2 = distinct !{}
!3 = !{!1, !2}
!4 = !{!2, !"n2", i64 32, i64 3}
!5 = !{!2, !"", i64 2048, i64 2}
"""


def test_marked_loads_of_vectors_ask() -> None:
    made = insert_prefetches(TEXT)
    assert made.count("call void @llvm.prefetch.p0(") == 2
    assert "entry:\n  %ahead.n2.0 = mul i64 %n2, 32\n" in made
    assert "getelementptr i8, ptr %p, i64 %ahead.n2.0\n" in made and "ptr %p, i64 2048\n" in made
    assert re.search(r"i32 0, i32 3, i32 1\)\n.*\n.*i32 0, i32 2, i32 1\)", made)
    engine.assembly(made)


@pytest.mark.parametrize("text", [
    TEXT.replace("!dcarray.ahead", "!other"),
    TEXT.replace("group !3", "group !1"),
    TEXT.replace("<8 x double>, ptr %p, align 8, !llvm.access.group !3", "<8 x double>, ptr %p, align 8"),
])  # fmt: skip
def test_nothing_else_is_touched(text: str) -> None:
    assert insert_prefetches(text) == text


def test_rows_that_are_used_afterwards_are_taken_several_at_a_time() -> None:
    found = kernel_text(kernel(ROWS))
    assert "step 4" in found and found.count(" ahead ") == unroll_and_jam.WAYS
    assert "step 4" not in kernel_text(kernel(ROWS, rows=500))


def test_what_is_done_once_for_a_row_does_not_count() -> None:
    costly = "z[i] = multiply(add(y[i], r[i]), add(multiply(y[i], y[i]), multiply(r[i], r[i]))) for i<N"
    assert "step 4" in kernel_text(kernel(f"rows 1 {{ {ONE}; {costly} }}"))


FOLDED = """region() {
  in A: f64[N, 1000];  in B: f64[N, 1000];  in x: f64[1000];  in r: f64[N];  out w: f64[1000]
  w[j] add= BODY init 0.0 for i<N, j<1000
}"""
SLOW = "multiply(r[i], multiply(add(A[i,j], x[j]), add(VALUE, x[j])))"


@pytest.mark.parametrize(
    ("value", "rows", "ways"), [("A[i,j]", 2000, 4), ("A[i,j]", 500, 2), ("B[i,j]", 2000, 2)]
)
def test_rows_wait_together_where_one_array_comes_from_memory(value: str, rows: int, ways: int) -> None:
    body = FOLDED.replace("BODY", SLOW.replace("VALUE", value)).replace("N", str(rows))
    region = parse(body)
    found = kernel_text(scheduler.schedule(region.body[0], region)[0])
    assert f" step {ways} " in found and (" ahead " in found) == (rows == 2000)


@pytest.mark.parametrize("body", [ONE, ROWS])
def test_they_arrive_in_the_code(body: str) -> None:
    assert "llvm.prefetch" in engine.optimised(emit(kernel(body), engine.machine()))


@pytest.mark.parametrize("shape", [(2049, 2051), (5000, 1003), (2050, 2048)])
def test_products_with_vectors(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    a, x, r, b = rng.random(shape), rng.random(shape[1]), rng.random(shape[0]), rng.random(shape)
    wrapped = [dc.asarray(v) for v in (a, x, r, b)]

    def work(a, x, r, b):  # type: ignore[no-untyped-def]
        return 2.0 * (a @ x) + 0.5 * (b @ x), r @ a, (a @ x) @ a, r @ b

    with dc.options(jit="eager", eager_below=0):
        found = work(*wrapped)
        dc.evaluate(*found)
    for got, want in zip(found, work(a, x, r, b), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


def test_infinities_and_nans_are_those_of_the_library() -> None:
    a, x = np.ones((4096, 1024)), np.ones(1024)
    a[5, 7], a[6, 8], a[9, :2], a[4095, 1023] = np.inf, np.nan, (np.inf, -np.inf), -np.inf
    wrapped, vector = dc.asarray(a), dc.asarray(x)
    with np.errstate(all="ignore"), dc.options(jit="eager", eager_below=0):
        np.testing.assert_array_equal(np.asarray(wrapped @ vector), a @ x)


def test_several_turns_at_a_time_keep_asking() -> None:
    asking = prefetch.with_prefetches((vector_loop("i1", (load(0),)),), "i0", 1)
    (loop,) = unroll_and_jam.unroll_and_jam(asking, "i0", 2)
    assert [stmt.value.prefetch for stmt in loop.body] == [(affine(32), affine(256))] * 2  # type: ignore[union-attr]
    (plain,) = unroll_and_jam.unroll_and_jam((vector_loop("i1", (load(0),)),), "i0", 2)
    assert (
        unroll_and_jam._loads((loop,)) == unroll_and_jam._loads((plain,))
        and len(unroll_and_jam._loads((loop,))) == 2
    )


@pytest.mark.parametrize("shape", [(2000, 1001), (6003, 300), (260, 20011)])
@pytest.mark.parametrize("dtype", ["d", "f"])
def test_rows_that_are_used_afterwards(shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.random(shape).astype(dtype)

    def work(x):  # type: ignore[no-untyped-def]
        top = np.exp(x - np.max(x, axis=1, keepdims=True))
        return top / np.sum(top, axis=1, keepdims=True), x - np.mean(x, axis=1)[:, None], x.sum(axis=0)

    with dc.options(jit="eager", eager_below=0):
        found = work(dc.asarray(x))
        dc.evaluate(*found)
    for got, want in zip(found, work(x), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5 if dtype == "f" else 1e-12, atol=1e-6)
