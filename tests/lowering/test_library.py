"""Libraries for C against the interpreter, also with sanitizers; sizes and products in C."""

import ctypes
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import library_runs
import numpy as np
import pytest
from library_runs import region_function

from dcarray.ir import dims
from dcarray.ir.parse import parse
from dcarray.lowering.aot import build, matmul_text
from dcarray.lowering.aot.interface import Refused
from dcarray.lowering.aot.library import OPTIONS, sources
from dcarray.lowering.aot.size_text import HELPERS, size_text, variable


def test_random_regions(tmp_path: Path) -> None:
    library = tmp_path / "libregions.so"
    kept = library_runs.region_library(range(100, 140), library, ("-O1",))
    assert len(kept) > 30
    library_runs.check_regions(library, kept)


def test_random_regions_under_sanitizers(tmp_path: Path) -> None:
    library = tmp_path / "libregions.so"
    try:
        kept = library_runs.region_library(range(15), library, library_runs.SANITIZERS)
    except Refused as error:
        pytest.skip(f"there are no sanitizers: {error}")
    done = library_runs.under_sanitizers(
        [sys.executable, library_runs.__file__, str(library), json.dumps(kept)]
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_sanitizers_are_on(tmp_path: Path) -> None:
    """What reads behind an array ends the process."""
    function = region_function(
        "reads", parse("region(N: int>=0) { in A: f64[N]; out B: f64[N]; B[i] = A[i] for i<N }")
    )
    made = sources([function], "one")
    text = made.c.replace("i0 < hi", "i0 <= hi")
    assert text != made.c
    library = tmp_path / "libone.so"
    try:
        build.build(made.__class__(text, "", "", made.exported), library, extra=library_runs.SANITIZERS)
    except Refused as error:
        pytest.skip(f"there are no sanitizers: {error}")
    call = (
        f"import ctypes, numpy as np; f = ctypes.CDLL({str(library)!r}).reads; a, b = np.ones((2, 500));"
        "f(ctypes.c_int64(500), *[ctypes.c_void_p(x.ctypes.data) for x in (a, b)])"
    )
    done = library_runs.under_sanitizers([sys.executable, "-c", call])
    assert done.returncode != 0 and "AddressSanitizer" in done.stderr


# ---- sizes -------------------------------------------------------------------------------------------
def _random_size(r: random.Random, depth: int) -> Any:
    if depth == 0 or r.random() < 0.2:
        return r.choice([dims.symbol("N"), dims.symbol("M", None), r.randint(-9, 9)])
    a, b = (_random_size(r, depth - 1) for _ in range(2))
    return r.choice(
        [
            lambda: a + b, lambda: a - b, lambda: a * b, lambda: dims.maximum(a, b),
            lambda: dims.minimum(a, b), lambda: a // r.randint(1, 9), lambda: a % r.randint(1, 9),
        ]
    )()  # fmt: skip


def test_sizes_are_exact_or_said_to_be_too_large(tmp_path: Path) -> None:
    r = random.Random(3)
    sizes = [dims.simplify(_random_size(r, 4)) for _ in range(60)]
    sizes = [size for size in sizes if type(size) is not int]
    values = [(0, 0), (1, -1), (7, 3), (12, -30), (1 << 40, (1 << 40) - 5), (1 << 62, -(1 << 62))]
    lines = ["#include <stdint.h>", "#include <stdio.h>", HELPERS, "int main(void) {", "  int dc_overflow;"]
    for n, m in values:
        lines.append(
            f"  {{ const int64_t {variable('N')} = {n}, {variable('M')} = {m}; (void){variable('M')};"
        )
        for size in sizes:
            lines.append(f"  dc_overflow = 0; {{ int64_t x = {size_text(size)};")
            lines.append('  printf("%d %lld\\n", dc_overflow, (long long)x); }')
        lines.append("  }")
    (tmp_path / "sizes.c").write_text("\n".join([*lines, "  return 0;", "}"]))
    program = tmp_path / "sizes"
    subprocess.run(
        [*build.compiler(), *OPTIONS[:1], "-w", str(tmp_path / "sizes.c"), "-o", str(program)], check=True
    )
    printed = iter(
        subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    )
    exact = 0
    for n, m in values:
        for size in sizes:
            overflow, found = map(int, next(printed).split())
            wanted = dims.evaluate(size, {"N": n, "M": m})
            if not overflow:
                assert found == wanted, (dims.show(size), n, m)
                exact += 1
            else:  # some step on the way has more bits
                assert max(n, abs(m)) > 1 << 30
    assert exact > len(sizes) * 4


# ---- products ----------------------------------------------------------------------------------------
def _multiplied(library: ctypes.CDLL, name: str, c: Any, a: Any, b: Any) -> None:
    m, k = a.shape
    size = c.itemsize
    steps = [s // size for x in (c, a, b) for s in x.strides]
    given = [x.ctypes.data for x in (c, a, b)] + [m, b.shape[1], k, *steps]
    library[name](*[ctypes.c_int64(n) for n in given])


@pytest.mark.parametrize("blas", [False, True])
def test_products_in_all_layouts(blas: bool, tmp_path: Path) -> None:
    text = matmul_text.functions_text(frozenset("fdFD"), blas)
    text = "#include <stdint.h>\n#include <stdlib.h>\n" + re.sub(
        r"static void (dc_.matmul)", r"void \1", text
    )
    (tmp_path / "products.c").write_text(text)
    files = [str(tmp_path / "products.c")]
    if blas:
        (tmp_path / "cblas.c").write_text(CBLAS)
        files.append(str(tmp_path / "cblas.c"))
    to = tmp_path / "libproducts.so"
    options = [*OPTIONS, "-O2", "-march=native", "-fPIC", "-shared", "-w"]
    subprocess.run([*build.compiler(), *options, *files, "-o", str(to)], check=True)
    library = ctypes.CDLL(str(to))
    r = np.random.default_rng(0)
    for char, letter in matmul_text.LETTERS.items():
        for m, n, k in (
            (1, 1, 1), (1, 7, 5), (6, 1, 70), (3, 3, 9), (33, 41, 7), (97, 20, 300), (5, 530, 2),
            (4, 4, 0),
        ):  # fmt: skip
            a = (r.random((m, k)) - 0.5 + (1j * r.random((m, k)) if letter in "cz" else 0)).astype(char)
            b = (r.random((k, n)) - 0.5).astype(char)
            wide_a, wide_b = np.zeros((2 * m, 3 * k + 1), char), np.zeros((2 * k + 1, 2 * n), char)
            wide_a[::2, 1::3], wide_b[1::2, ::2] = a, b
            for left, right in (
                (a, b),
                (np.asfortranarray(a), np.asfortranarray(b)),
                (wide_a[::2, 1::3], b),
                (a, wide_b[1::2, ::2]),
                (a[::-1].copy()[::-1], b),
            ):
                for order in "CF":
                    c = np.full((m, n), np.nan, char, order=order)
                    _multiplied(library, f"dc_{letter}matmul", c, left, right)
                    np.testing.assert_allclose(
                        c, a @ b, rtol=3e-5 if char in "fF" else 1e-12, atol=1e-5 if char in "fF" else 1e-12
                    )
    if blas:
        calls = ctypes.c_int.in_dll(library, "calls").value
        assert calls > 40


CBLAS = """
#include <stdint.h>
int calls;
#define GEMM(NAME, T, PART, S, P, R, BY) \\
  void NAME(int order, int ta, int tb, int m, int n, int k, S alpha, P a_, int la, P b_, int lb, \\
            S beta, R c_, int lc) { \\
    const T *a = (const T *)a_, *b = (const T *)b_; \\
    T *c = (T *)c_; \\
    calls++; \\
    if (order != 101 || BY alpha != 1 || BY beta != 0) return; \\
    for (int i = 0; i < m; i++) \\
      for (int j = 0; j < n; j++) { \\
        T s = 0; \\
        for (int p = 0; p < k; p++) \\
          s += (ta == 112 ? a[p * la + i] : a[i * la + p]) * (tb == 112 ? b[j * lb + p] : b[p * lb + j]); \\
        c[i * lc + j] = s; \\
      } \\
  }
GEMM(cblas_sgemm, float, float, float, const float *, float *, )
GEMM(cblas_dgemm, double, double, double, const double *, double *, )
GEMM(cblas_cgemm, float _Complex, float, const void *, const void *, void *, *(const float *))
GEMM(cblas_zgemm, double _Complex, double, const void *, const void *, void *, *(const double *))
"""
