"""Seam carving: the picture gets narrower by a column in each step."""
import numpy as np


def energy(img):
    grey = img @ np.array([0.299, 0.587, 0.114])
    dy, dx = np.gradient(grey)
    return np.abs(dx) + np.abs(dy)


def cumulative(E):
    M = E.copy()
    for i in range(1, M.shape[0]):
        left = np.hstack([[np.inf], M[i - 1, :-1]])
        right = np.hstack([M[i - 1, 1:], [np.inf]])
        M[i] += np.minimum(np.minimum(left, M[i - 1]), right)
    return M


def find_seam(M):
    h, w = M.shape
    seam = np.zeros(h, dtype=int)
    seam[-1] = np.argmin(M[-1])
    for i in range(h - 2, -1, -1):
        j = seam[i + 1]
        lo, hi = max(j - 1, 0), min(j + 2, w)
        seam[i] = lo + np.argmin(M[i, lo:hi])
    return seam


def remove(img, seam):
    h, w, c = img.shape
    keep = np.ones((h, w), dtype=bool)
    keep[np.arange(h), seam] = False
    return img[keep].reshape(h, w - 1, c)


rng = np.random.default_rng(66)
h, w = 240, 400
y, x = np.mgrid[0:h, 0:w]
img = np.stack([np.sin(x / 17.0) * 60 + 120, np.cos(y / 23.0) * 50 + 128, 0.4 * x + 0.3 * y], axis=-1)
img[40:120, 60:110] = rng.uniform(0, 255, (80, 50, 3))
img[70:90, 180:230] += 40
img += rng.normal(0, 3, img.shape)
total = []
for k in range(160):
    E = energy(img)
    M = cumulative(E)
    seam = find_seam(M)
    total.append(M[-1].min())
    img = remove(img, seam)
    if k % 40 == 0:
        print(k, img.shape, f"{total[-1]:.5f}")
print(img.shape, f"{img.mean():.6f} {img.std():.6f} {sum(total):.4f}")
