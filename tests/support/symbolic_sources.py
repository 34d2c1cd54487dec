"""Programs as source, over the symbols N and M: some that are well known, and random ones."""

import random

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


def random_program(seed: int, name: str = "f") -> str:
    """The source of a random program."""
    r = random.Random(seed)
    makers = [_array_statement, _loop_statement, _other_statement]
    body = "\n".join(r.choice(makers)(r) for _ in range(r.randint(2, 4)))
    lines = ["n, m = A.shape", *body.splitlines(), "return A * 0.5, w"]
    arguments = (
        "A: np.float64[N, M], B: np.float64[N, M], v: np.float64[M], w: np.float64[N], s: float, T: int"
    )
    return f"def {name}({arguments}):\n" + "\n".join("    " + line for line in lines) + "\n"
