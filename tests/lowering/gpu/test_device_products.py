"""Matrix products on devices: tiles in shared memory, and small products."""

from dataclasses import replace

import pytest
from device_statements import SMALL, run_both

from dcarray.ir import text, verify
from dcarray.lowering.gpu.scheduler import schedule
from dcarray.lowering.kernel.text import kernel_text


def region(source):
    made = text.parse(source)
    verify.verify(made)
    return made


def product(sizes, a, b, dtype="f64", stack=()):
    """A region of a matrix product with operands that may be transposed."""
    m, k, n = sizes
    batch = "".join(f"{size}, " for size in stack)
    names = "pq"[: len(stack)]
    rows = {"n": f"A: {dtype}[{batch}{m}, {k}]", "t": f"A: {dtype}[{batch}{k}, {m}]"}[a]
    columns = {"n": f"B: {dtype}[{batch}{k}, {n}]", "t": f"B: {dtype}[{batch}{n}, {k}]"}[b]
    at = "".join(f"{name}," for name in names)
    left, right = {"n": "i,k", "t": "k,i"}[a], {"n": "k,j", "t": "j,k"}[b]
    loops = "".join(f"{name}<{size}, " for name, size in zip(names, stack, strict=True))
    init = {"f64": "init 0.0", "i64": "init 0"}.get(dtype, "")
    return region(f"""region() {{
  in {rows};  in {columns};  inout C: {dtype}[{batch}{m}, {n}]
  C[{at}i,j] add= multiply(A[{at}{left}], B[{at}{right}]) {init} for {loops}i<{m}, j<{n}, k<{k}
}}""")


@pytest.mark.parametrize("threads", [4, 8, 16])
@pytest.mark.parametrize("sizes", [(8, 4, 8), (5, 7, 9), (9, 2, 3), (2, 13, 17), (3, 3, 3)])
@pytest.mark.parametrize("turned", ["nn", "tn", "nt", "tt"])
def test_products(turned, sizes, threads):
    limits = replace(SMALL, threads=threads, tile=8, narrow=64)  # such rows are no panels
    (kernel,) = run_both(product(sizes, *turned), limits=limits)
    assert "stack s2: float64" in kernel_text(kernel) and "per thread" in kernel_text(kernel)


@pytest.mark.parametrize("vector", [0, 4])
@pytest.mark.parametrize("sizes", [(4, 4, 8), (3, 35, 9), (26, 5, 17), (2, 16, 40)])
@pytest.mark.parametrize("turned", ["n", "t"])
def test_products_of_few_rows(turned, sizes, vector):
    limits = replace(SMALL, threads=8, tile=64, narrow=4, vector=vector)
    (kernel,) = run_both(product(sizes, turned, "n", "f64", (2,)), limits=limits)
    assert kernel_text(kernel).count("stack s") == (0 if vector else 2)


@pytest.mark.parametrize("dtype", ["f32", "i32", "c64"])
def test_products_of_few_rows_of_other_types(dtype):
    limits = replace(SMALL, threads=8, tile=64, narrow=4)
    for vector in (0, 4):
        run_both(product((5, 20, 33), "n", "n", dtype, (3,)), limits=replace(limits, vector=vector))


@pytest.mark.parametrize("dtype", ["f32", "i32", "c128"])
def test_products_of_stacks(dtype):
    made = product((5, 6, 7), "n", "n", dtype, (2, 3)) if dtype != "c128" else None
    if made is None:
        made = region("""region() {
  in A: c128[2, 5, 6];  in B: c128[6, 7];  inout C: c128[2, 5, 7]
  C[p,i,j] add= multiply(A[p,i,k], conjugate(B[k,j])) for p<2, i<5, j<7, k<6
}""")
    (kernel,) = run_both(made)
    assert "per thread" in kernel_text(kernel)


def test_products_of_booleans():
    (kernel,) = run_both(
        region("""region() {
  in A: bool[5, 6];  in B: bool[6, 7];  inout C: bool[5, 7]
  C[i,j] logical_or= logical_and(A[i,k], B[k,j]) for i<5, j<7, k<6
}""")
    )
    assert "per thread" in kernel_text(kernel)


@pytest.mark.parametrize("sizes", [(9, 5, 6), (1, 0, 3), (0, 2, 3)])
def test_products_of_symbolic_size(sizes):
    made = region("""region(M: int>=0, K: int>=0, N: int>=0) {
  in A: f64[M, K+1];  in B: f64[K, N];  inout C: f64[M, N]
  C[i,j] add= multiply(A[i,k+1], B[k,j]) init 1.0 for i<M, j<N, k<K
}""")
    (kernel,) = run_both(made, dict(zip("MKN", sizes, strict=True)))
    assert "per thread" in kernel_text(kernel)


def test_small_products_of_many_stacks_have_a_thread_for_each_element():
    made = product((4, 3, 8), "n", "n", "f64", (100000,))
    kernel, binding = schedule(made.body[0], made)
    assert "stack" not in kernel_text(kernel) and len(kernel.phases) == 1
    assert binding.extents == (-(-100000 // 32) * 4,)


def test_the_tiles_of_a_large_product():
    made = product((1000, 300, 500), "n", "n")
    kernel, binding = schedule(made.body[0], made)
    assert binding.extents == (16 * 8,) and "stack s0: float64[1040]" in kernel_text(kernel)


def test_the_product_of_a_matrix_and_a_vector_is_a_reduction():
    made = region("""region() {
  in A: f64[500, 400];  in x: f64[400];  out y: f64[500]
  y[i] add= multiply(A[i,k], x[k]) init 0.0 for i<500, k<400
}""")
    assert "per thread" not in kernel_text(schedule(made.body[0], made)[0])
