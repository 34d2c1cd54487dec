"""Gaussian process regression: kernels as functions, evidence on a grid, active learning with growing data."""
import numpy as np


def rbf(X1, X2, length=1.0, amp=1.0):
    sq = np.sum(X1**2, 1).reshape(-1, 1) + np.sum(X2**2, 1) - 2 * np.dot(X1, X2.T)
    return amp**2 * np.exp(-0.5 / length**2 * sq)


def periodic(X1, X2, length=1.0, amp=1.0, period=2.0):
    d = np.abs(X1 - X2.T)
    return amp**2 * np.exp(-2 * np.sin(np.pi * d / period) ** 2 / length**2)


def posterior(X_s, X, y, kernel, noise, **par):
    K = kernel(X, X, **par) + noise**2 * np.eye(len(X))
    K_s = kernel(X, X_s, **par)
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    mu = K_s.T @ alpha
    v = np.linalg.solve(L, K_s)
    var = np.diag(kernel(X_s, X_s, **par)) - np.sum(v**2, axis=0)
    return mu, var


def evidence(X, y, kernel, noise, **par):
    K = kernel(X, X, **par) + noise**2 * np.eye(len(X))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y.T @ alpha - np.log(np.diag(L)).sum() - 0.5 * len(X) * np.log(2 * np.pi)


def target(x):
    return np.sin(3 * x) + 0.4 * np.cos(7 * x) + 0.1 * x


rng = np.random.default_rng(77)
X = rng.uniform(-4, 4, (120, 1))
y = target(X[:, 0]) + 0.15 * rng.standard_normal(120)
lengths = np.linspace(0.1, 1.5, 29)
amps = np.linspace(0.4, 2.0, 17)
surface = np.array([[evidence(X, y, rbf, 0.15, length=l, amp=a) for l in lengths] for a in amps])
i, j = np.unravel_index(np.argmax(surface), surface.shape)
print("evidence %.5f at amplitude %.2f, length %.2f" % (surface[i, j], amps[i], lengths[j]))

X_s = np.linspace(-4, 4, 300).reshape(-1, 1)
mu, var = posterior(X_s, X, y, rbf, 0.15, length=lengths[j], amp=amps[i])
rmse = np.sqrt(np.mean((mu - target(X_s[:, 0])) ** 2))
mu_p, var_p = posterior(X_s, X, y, periodic, 0.15, length=0.8, period=2 * np.pi / 3)
print("rmse %.6f, band %.6f; periodic %.6f" % (rmse, 1.96 * np.sqrt(np.maximum(var, 0)).mean(), np.sqrt(np.mean((mu_p - target(X_s[:, 0])) ** 2))))

# ask for the next point where the variance is largest
Xa = np.array([[0.0]])
ya = target(Xa[:, 0])
for n in range(90):
    mu, var = posterior(X_s, Xa, ya, rbf, 1e-2, length=0.5, amp=1.0)
    new = X_s[np.argmax(np.round(var, 6))]
    Xa = np.vstack([Xa, new])
    ya = np.append(ya, target(new))
print("after %d points: error %.5f, spread %.5f" % (len(Xa), np.abs(mu - target(X_s[:, 0])).max(), Xa.std()))
