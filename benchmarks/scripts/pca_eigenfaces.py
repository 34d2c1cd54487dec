"""PCA of small pictures: SVD, power iteration with deflation, reconstruction, whitening."""
import numpy as np


def make_pictures(n, side, rng):
    yy, xx = np.mgrid[-1:1:side * 1j, -1:1:side * 1j]
    pictures = []
    for _ in range(n):
        cx, cy = rng.normal(0, 0.15, 2)
        width, tilt = 0.3 + 0.1 * rng.random(), rng.normal(0, 0.3)
        face = np.exp(-(((xx - cx) * np.cos(tilt) + (yy - cy) * np.sin(tilt)) ** 2) / width - (yy - cy) ** 2 / 0.5)
        for sx in (-0.3, 0.3):
            face -= 0.6 * np.exp(-((xx - cx - sx) ** 2 + (yy - cy + 0.2) ** 2) / 0.01)
        face += rng.uniform(0.1, 0.5) * (np.abs(yy - cy - 0.4) < 0.05) * (np.abs(xx - cx) < 0.25)
        pictures.append(face + 0.05 * rng.standard_normal(face.shape))
    return np.array(pictures)


def power_iteration(C, k, iterations=200):
    vectors, values = [], []
    C = C.copy()
    for _ in range(k):
        v = np.ones(len(C)) / np.sqrt(len(C))
        for _ in range(iterations):
            w = C @ v
            v = w / np.linalg.norm(w)
        lam = v @ C @ v
        values.append(lam)
        vectors.append(v)
        C -= lam * np.outer(v, v)
    return np.array(values), np.array(vectors)


rng = np.random.default_rng(19)
faces = make_pictures(600, 24, rng)
X = faces.reshape(len(faces), -1)
mean = X.mean(axis=0)
Xc = X - mean
U, S, Vt = np.linalg.svd(Xc, full_matrices=False)
explained = S**2 / np.sum(S**2)
needed = np.searchsorted(np.cumsum(explained), 0.95) + 1
values, vectors = power_iteration(Xc.T @ Xc / (len(X) - 1), 4)
print(needed, np.round(explained[:4], 5), np.round(values / (S[:4] ** 2 / (len(X) - 1)), 4))

errors = []
for k in (1, 5, 20, 80):
    scores = Xc @ Vt[:k].T
    back = scores @ Vt[:k] + mean
    errors.append(np.sqrt(np.mean((X - back) ** 2)))
print("reconstruction", np.round(errors, 6))

white = Xc @ Vt[:10].T / S[:10] * np.sqrt(len(X) - 1)
print("whitened", f"{np.abs(np.cov(white.T) - np.eye(10)).max() < 1e-9}")
d = np.sqrt(((white[:, None, :] - white[None, :, :]) ** 2).sum(-1))
np.fill_diagonal(d, np.inf)
print("nearest", f"{d.min(axis=1).mean():.5f}", len(np.unique(d.argmin(axis=1))))
