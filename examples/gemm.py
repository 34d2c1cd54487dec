"""A general matrix product, compiled ahead of time for C programs::

    python -m dcarray compile examples/gemm.py:gemm -o out --stem gemm
    cc examples/call_gemm.c -Iout -Lout -lgemm -lm -Wl,-rpath,$PWD/out -o out/call_gemm
    out/call_gemm

As a script it compares the loader in Python with NumPy::

    python examples/gemm.py out
"""

import sys

import numpy as np

import dcarray as dc

N, M, K = dc.symbol("N"), dc.symbol("M"), dc.symbol("K")
float64 = dc.types.float64


@dc.program
def gemm(alpha: float, beta: float, C: float64[N, M], A: float64[N, K], B: float64[K, M]):
    C[:] = alpha * A @ B + beta * C


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    import gemm as compiled  # the loader, out/gemm.py

    rng = np.random.default_rng(0)
    a, b, c = rng.random((300, 200)), rng.random((200, 250)), rng.random((300, 250))
    expected = 1.5 * a @ b + 0.5 * c
    compiled.gemm(1.5, 0.5, c, a, b)
    print(f"largest difference to NumPy: {abs(c - expected).max():.1e}")
