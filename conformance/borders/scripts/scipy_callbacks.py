"""A script whose functions SciPy calls back, where they read and change arrays."""

import numpy as np
from scipy import integrate, interpolate, ndimage, optimize, signal, sparse, stats
from scipy.sparse.linalg import LinearOperator, cg

rng = np.random.default_rng(6)
t = np.linspace(0, 4, 4_000)
data = 2.5 * np.exp(-1.3 * t) + 0.3 + 0.02 * rng.normal(size=t.size)
evaluations = np.zeros(1, dtype=int)
best = {"x": None, "f": np.inf}


def residual(p):
    evaluations[0] += 1
    return p[0] * np.exp(-p[1] * t) + p[2] - data


def cost(p):
    f = 0.5 * np.sum(residual(p) ** 2)
    if f < best["f"]:
        best["f"], best["x"] = f, p.copy()
    return f


def watch(p):
    path.append(p.copy())


path = []
found = optimize.minimize(cost, np.array([1.0, 1.0, 0.0]), method="BFGS", callback=watch)
print(
    found.x.round(4),
    np.allclose(best["x"], found.x, atol=1e-3),
    len(path) > 3,
    path[0].shape,
    evaluations[0] > 20,
)
print(
    optimize.least_squares(residual, [1.0, 1.0, 0.0]).x.round(5),
    optimize.curve_fit(lambda s, a, b: a * np.exp(-b * s), t, data)[0].round(4),
)

n = 60
flow = np.zeros((n, n))
flow[20:30, 20:40] = 1
seen = []


def heat(time, u):
    field = u.reshape(n, n)
    out = np.zeros_like(field)
    out[1:-1, 1:-1] = (
        field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2] - 4 * field[1:-1, 1:-1]
    )
    seen.append(type(u) is np.ndarray)
    return out.ravel()


def cooled(time, u):
    return u.max() - 0.6


cooled.terminal = True
solution = integrate.solve_ivp(heat, (0, 30), flow.ravel(), events=cooled, rtol=1e-7, atol=1e-9)
print(solution.status, round(float(solution.t_events[0][0]), 4), solution.y[:, -1].sum().round(4), all(seen))
print(
    round(integrate.quad(lambda s: np.exp(-np.sum(t[:5] + s)), 0, 4)[0], 6),
    integrate.quad_vec(lambda s: np.sin(s * t[:50]), 0, 1)[0].sum(),
)

shift = np.zeros(n * n)
products = []


def apply(v):
    products.append(float(v @ v))
    shift[:] = v
    f = v.reshape(n, n)
    return (4.1 * f - np.roll(f, 1, 0) - np.roll(f, -1, 0) - np.roll(f, 1, 1) - np.roll(f, -1, 1)).ravel()


A = LinearOperator((n * n, n * n), matvec=apply, dtype=float)
x, info = cg(A, flow.ravel(), rtol=1e-10)
print(info, x.sum().round(5), len(products) > 10, np.linalg.norm(apply(x) - flow.ravel()) < 1e-8)

picture = flow + 0.1 * rng.normal(size=flow.shape)
print(
    ndimage.generic_filter(picture, lambda w: np.median(w) - w.min(), size=3).sum(),
    ndimage.label(picture > 0.5)[1],
)
print(
    ndimage.map_coordinates(picture, np.array([[1.5, 20.2], [3.3, 30.7]]), order=1),
    ndimage.gaussian_filter(picture, 2).max(),
)
for _ in range(10):
    picture = ndimage.convolve(picture, np.ones((3, 3)) / 9) * 0.99 + 0.01 * flow
print(
    picture.sum(),
    signal.convolve2d(picture, np.ones((2, 2)), "same").mean(),
    signal.find_peaks(picture.sum(axis=1))[0],
)
spline = interpolate.CubicSpline(t[::100], data[::100])
print(
    spline(1.234), interpolate.RegularGridInterpolator((np.arange(n), np.arange(n)), picture)([[3.5, 20.5]])
)
print(stats.bootstrap((data[:50],), np.mean, n_resamples=200, rng=np.random.default_rng(0)).standard_error)
print(
    optimize.brentq(lambda s: np.polyval([1, 0, -2], s), 0, 2),
    optimize.fsolve(lambda v: v**2 - np.arange(1, 4), np.ones(3)),
)
coo = sparse.random(200, 200, 0.05, rng=np.random.default_rng(9), format="csr")
v = np.ones(200)
for _ in range(20):
    v = coo @ v + np.ones(200)
    v /= np.linalg.norm(v)
print(v.sum(), (coo.T @ np.diag(v)).sum(), type(coo @ v).__name__)
