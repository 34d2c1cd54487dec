"""A script in which functions compiled by Numba read and change arrays of plain loops around them."""

import numpy as np
from numba import cfunc, float64, guvectorize, njit, types, vectorize
from numba.typed import Dict, List


@njit
def relax(u, f, h):
    worst = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h * h * f[i, j])
            worst = max(worst, abs(new - u[i, j]))
            u[i, j] = new
    return worst


@vectorize([float64(float64, float64)])
def soft(x, t):
    return np.sign(x) * max(abs(x) - t, 0.0)


@guvectorize([(float64[:], float64[:])], "(n)->(n)")
def running(x, out):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        out[i] = total


@cfunc(types.float64(types.float64))
def weight(x):
    return x * x + 1.0


@njit
def counts(values):
    found = Dict.empty(types.int64, types.int64)
    for v in values:
        found[v] = found.get(v, 0) + 1
    return found


rng = np.random.default_rng(4)
u = np.zeros((90, 110))
f = rng.normal(size=u.shape)
errors = []
for _sweep in range(25):
    errors.append(relax(u, f, 0.1))
    u[:, 0] = u[:, 1]
    u *= 0.999
print(u.sum(), errors[0], errors[-1], type(u).__name__)

x = rng.normal(size=40_000)
for _ in range(20):
    x = soft(x, 0.01) + 0.02 * np.cos(x)
    x -= x.mean()
print(x.std(), running(x.reshape(200, 200))[:2, -1], soft(x[:3], 0.5), weight.ctypes(3.0))

history = List()
level = np.linspace(0, 1, 30_000)
for _ in range(5):
    level = level * level + 0.1
    history.append(level.copy())
print(len(history), history[2].sum(), counts(np.floor(level * 10).astype(np.int64))[1])

record = np.zeros(5_000, dtype=[("a", "f8"), ("n", "i4")])
record["a"] = np.sqrt(np.arange(5_000))
record["n"] = np.arange(5_000) % 7


@njit
def by_class(r):
    out = np.zeros(7)
    for i in range(r.size):
        out[r[i]["n"]] += r[i]["a"]
    return out


print(by_class(record), by_class(record[::2])[:2], njit(lambda a: a.T.copy())(u).shape)
