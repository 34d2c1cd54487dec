"""Gaussian mixture by EM with full covariances; the number of components by BIC."""
import numpy as np


def log_gaussian(X, mean, cov):
    d = X.shape[1]
    L = np.linalg.cholesky(cov)
    z = np.linalg.solve(L, (X - mean).T)
    return -0.5 * (d * np.log(2 * np.pi) + np.sum(z**2, axis=0)) - np.sum(np.log(np.diag(L)))


def logsumexp(a, axis):
    top = a.max(axis=axis, keepdims=True)
    return (top + np.log(np.exp(a - top).sum(axis=axis, keepdims=True))).squeeze(axis)


class GMM:
    def __init__(self, k, iters=40, reg=1e-6, seed=0):
        self.k, self.iters, self.reg = k, iters, reg
        self.rng = np.random.RandomState(seed)

    def initialise(self, X):
        n, d = X.shape
        picks = [self.rng.randint(n)]
        while len(picks) < self.k:
            d2 = np.min([((X - X[p]) ** 2).sum(axis=1) for p in picks], axis=0)
            picks.append(int(np.argmax(d2 * self.rng.rand(n))))
        self.means = [X[p].copy() for p in picks]
        self.covs = [np.cov(X.T) for _ in range(self.k)]
        self.weights = np.ones(self.k) / self.k

    def e_step(self, X):
        logp = np.stack([np.log(w) + log_gaussian(X, m, c) for w, m, c in zip(self.weights, self.means, self.covs)], axis=1)
        norm = logsumexp(logp, 1)
        return np.exp(logp - norm[:, None]), norm.sum()

    def m_step(self, X, R):
        Nk = R.sum(axis=0)
        self.weights = Nk / len(X)
        for j in range(self.k):
            self.means[j] = (R[:, j:j + 1] * X).sum(axis=0) / Nk[j]
            D = X - self.means[j]
            self.covs[j] = (R[:, j, None] * D).T @ D / Nk[j] + self.reg * np.eye(X.shape[1])

    def fit(self, X):
        self.initialise(X)
        self.trace = []
        for it in range(self.iters):
            R, ll = self.e_step(X)
            self.trace.append(ll)
            self.m_step(X, R)
        return self

    def bic(self, X):
        d = X.shape[1]
        free = self.k * (1 + d + d * (d + 1) / 2) - 1
        return -2 * self.e_step(X)[1] + free * np.log(len(X))


rng = np.random.RandomState(3)
parts = []
for size, centre in ((2500, (0, 0, 0)), (2000, (5, 1, -2)), (1500, (-4, 4, 3))):
    mix = rng.randn(3, 3)
    parts.append(rng.randn(size, 3) @ mix.T + np.array(centre))
X = np.concatenate(parts)
bics = {}
for k in range(1, 6):
    model = GMM(k, seed=k).fit(X)
    bics[k] = model.bic(X)
    print(k, f"{model.trace[0]:.4f} {model.trace[-1]:.4f} {bics[k]:.4f}")
best = min(bics, key=bics.get)
model = GMM(3, seed=3).fit(X)
order = np.argsort(model.weights)
print("best", best, np.round(model.weights[order], 4), np.round(np.array(model.means)[order], 2).tolist())
