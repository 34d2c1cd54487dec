"""Programs traced once with symbolic sizes give NumPy's results at all sizes, or guards refuse these."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from program_runs import module, served_sizes

from dcarray.core.errors import ProgramError
from dcarray.jit.program.region import region_of

SIZES: list[Any] = [
    {"N": n, "M": m, "T": t}
    for n, m, t in ((0, 0, 0), (1, 1, 1), (2, 2, 3), (0, 4, 2), (5, 1, 2), (2, 3, -1),
                    (7, 9, 2), (9, 7, 1), (33, 40, 2))
]  # fmt: skip
LARGE = [s for s in SIZES if min(s["N"], s["M"]) >= 7]

FAMOUS = """
def jacobi(A: np.float64[N, N], B: np.float64[N, N], T: int):
    for t in range(1, T):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])

def lu(A: np.float64[N, N]):
    for i in range(A.shape[0]):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, len(A)):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]

def covariance(count: float, data: np.float64[N, M]):
    m = data.shape[1]
    data -= np.mean(data, axis=0)
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i:m, i] = cov[i, i:m] = data[:, i] @ data[:, i:m] / (count - 0.1)
    return cov

def durbin(r: np.float64[N]):
    n = len(r)
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y

def two_products(alpha: np.float64, A: np.float64[N, M], x: np.float64[M], y: np.float64[N]):
    y[:] = alpha * (A @ x)
    return A.T @ y, float(y.sum()), A.shape[0] * A.shape[1] + 1

def strided(A: np.float64[N, M], b: np.float32[2 * M + 1]):
    A[: 6 * len(A) // 6] *= 2.0
    b[1::2] = 3.0
    b[: b.shape[0] // 2] += b[b.shape[0] // 2 + 1 :]
    return A[:, 1:] + 1.0

def accumulated(A: np.float64[N, M]):
    total = 0.0
    for i in range(A.shape[0]):
        total += A[i, 0]
        last = A[i, 1]
    return total, last

def whole(A: np.int64[N, M], T: int):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if i > j + T:
                A[i, j] = i * A.shape[1] + j
            elif j - i > 2:
                A[i, j] += A[i, j - i - 1] - T
    return A
"""


@pytest.mark.parametrize(
    "name", ["jacobi", "lu", "covariance", "durbin", "two_products", "strided", "accumulated", "whole"]
)
def test_known_programs(name: str, tmp_path: Path) -> None:
    function = getattr(module(tmp_path, FAMOUS, f"famous_{name}"), name)
    served = served_sizes(function, SIZES)
    assert all(sizes in served for sizes in LARGE)


def _slices(r: random.Random, size: str, margin: int) -> str:
    low = r.randint(0, margin)
    high = margin - low
    stop = r.choice([f"-{high}", f"{size} - {high}"]) if high else r.choice(["", size])
    return f"{low or ''}:{stop}"


def _array_statement(r: random.Random) -> str:
    rows, columns = r.randint(0, 3), r.randint(0, 3)

    def part(name: str) -> str:
        return f"{name}[{_slices(r, 'n', rows)}, {_slices(r, 'm', columns)}]"

    vector = f"v[{_slices(r, 'm', columns)}]"
    terms = [part("A"), part("B"), vector, f"w[{_slices(r, 'n', rows)}][:, None]", "s", "0.5"]
    value = " + ".join(f"0.25 * {t}" for t in r.sample(terms, 3))
    target = r.choice("AB")
    return f"{part(target)} {r.choice(['=', '+=', '-='])} {value}"


def _loop_statement(r: random.Random) -> str:
    low, high, left, right = (r.randint(0, 2) for _ in range(4))
    inner = f"range({left}, m - {right})"

    def element(name: str) -> str:
        return f"{name}[i + {r.randint(-low, high)}, j + {r.randint(-left, right)}]"

    target, operands = element(r.choice("AB")), [element("A"), element("B"), "v[j]", "w[i]", "s"]
    value = " + ".join(f"0.3 * {t}" for t in r.sample(operands, 3))
    lines = [f"for i in range({low}, n - {high}):", f"    for j in {inner}:", f"        {target} = {value}"]
    if r.random() < 0.3:
        lines.append(f"        if i {r.choice(['<', '>', '=='])} j:")
        lines.append(f"            w[i] = 0.5 * {element('B')}")
    return "\n".join(lines)


def _other_statement(r: random.Random) -> str:
    return r.choice([
        "w[:] = 0.1 * A.sum(axis=1)", "v += 0.01 * (w @ B)", "w -= 0.01 * (A @ v)", "B[:, ::-1] = A * 0.5",
        "C = A * v\nB[:] = C - 0.5 * A", "for i in range(n):\n    B[i] = 0.5 * A[n - 1 - i] + v",
        "for i in range(1, n):\n    w[i] = 0.5 * w[i - 1] + A[i, :].max()",
        "for i in range(n):\n    x = A[i, 1:] * 0.5\n    w[i] = 0.1 * x.sum()",
        "t0 = A.T * 0.5\nv[:] = t0.sum(axis=1)", "for t in range(T):\n    A[1:] = 0.5 * A[:-1] + s",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(14))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    makers = [_array_statement, _loop_statement, _other_statement]
    body = "\n".join(r.choice(makers)(r) for _ in range(r.randint(2, 4)))
    lines = ["n, m = A.shape", *body.splitlines(), "return A * 0.5, w"]
    arguments = (
        "A: np.float64[N, M], B: np.float64[N, M], v: np.float64[M], w: np.float64[N], s: float, T: int"
    )
    text = f"def f({arguments}):\n" + "\n".join("    " + line for line in lines) + "\n"
    served = served_sizes(module(tmp_path, text, f"random_{seed}").f, SIZES, seed)
    assert all(sizes in served for sizes in LARGE), text


def test_guards_are_relations_of_sizes(tmp_path: Path) -> None:
    made = module(tmp_path, """
def fits(A: np.float64[N], B: np.float64[M]):
    A += B

def first(A: np.float64[N]):
    return A[0] + A[-2]

def inside(A: np.float64[N], T: int):
    if T >= 0 and T < len(A):
        A[T] = 1.0
""")  # fmt: skip

    def guards(function: Any) -> list[str]:
        return [str(g) for g in region_of(function).region.guards]

    assert guards(made.fits) in (["Eq(M - N, 0)"], ["Eq(-M + N, 0)"])
    assert guards(made.first) == ["N - 1 >= 0", "N - 2 >= 0"]
    assert guards(made.inside) == []


WRONG = """
def reaches_out(A: np.float64[N]):
    for i in range(len(A)):
        A[i + 1] = 0.0

def calls_itself(A: np.float64[N]):
    return calls_itself(A)

def untyped(A):
    return A

def odd(A: np.ndarray):
    return A

def dynamic(A: np.float64[N]):
    return A if A[0] > 0 else None

def no_axis(A: np.float64[2 * N]):
    return A

def unbound(A: np.float64[N]):
    return np.zeros(M)

def mixed(A: np.float64[3], B: np.float64[4]):
    return A + B

def both(N: int, A: np.float64[N]):
    return A
"""


@pytest.mark.parametrize(("name", "offset", "reason"), [
    ("reaches_out", 2, "bounds"), ("calls_itself", 0, "calls itself"), ("untyped", 0, "no type"),
    ("odd", 0, "no type of a program"),
    ("dynamic", 1, "depends on a condition"), ("no_axis", 0, "does not follow"),
    ("unbound", 1, "no argument has the size M"), ("mixed", 1, "not known to fit"), ("both", 0, "size of A"),
])  # fmt: skip
def test_errors_name_file_and_line(name: str, offset: int, reason: str, tmp_path: Path) -> None:
    made = module(tmp_path, WRONG)
    with pytest.raises(ProgramError, match=reason) as caught:
        region_of(getattr(made, name))
    lines = (tmp_path / "programs.py").read_text().splitlines()
    start = next(k for k, line in enumerate(lines, 1) if line.startswith(f"def {name}("))
    assert caught.value.line == start + offset and str(caught.value).startswith(str(tmp_path / "programs.py"))
