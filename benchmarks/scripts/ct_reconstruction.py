"""Tomography: a phantom, its sinogram, filtered back projection, and a few sweeps of ART."""
import numpy as np


def phantom(n):
    ellipses = [(1.0, 0.69, 0.92, 0, 0, 0), (-0.8, 0.6624, 0.874, 0, -0.0184, 0), (-0.2, 0.11, 0.31, 0.22, 0, -18),
                (-0.2, 0.16, 0.41, -0.22, 0, 18), (0.1, 0.21, 0.25, 0, 0.35, 0), (0.1, 0.046, 0.046, 0, 0.1, 0)]
    y, x = np.mgrid[1:-1:n * 1j, -1:1:n * 1j]
    img = np.zeros((n, n))
    for value, a, b, x0, y0, deg in ellipses:
        c, s = np.cos(np.deg2rad(deg)), np.sin(np.deg2rad(deg))
        xr = (x - x0) * c + (y - y0) * s
        yr = (y - y0) * c - (x - x0) * s
        img[(xr / a) ** 2 + (yr / b) ** 2 <= 1] += value
    return img


def rotate(img, angle):
    n = len(img)
    mid = (n - 1) / 2
    y, x = np.indices(img.shape) - mid
    c, s = np.cos(angle), np.sin(angle)
    xs, ys = c * x - s * y + mid, s * x + c * y + mid
    x0, y0 = np.floor(xs).astype(int), np.floor(ys).astype(int)
    fx, fy = xs - x0, ys - y0
    valid = (x0 >= 0) & (x0 < n - 1) & (y0 >= 0) & (y0 < n - 1)
    x0, y0 = np.where(valid, x0, 0), np.where(valid, y0, 0)
    out = img[y0, x0] * (1 - fx) * (1 - fy) + img[y0, x0 + 1] * fx * (1 - fy) + img[y0 + 1, x0] * (1 - fx) * fy + img[y0 + 1, x0 + 1] * fx * fy
    return out * valid


def ramp_filter(sinogram):
    n = sinogram.shape[1]
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    f = np.fft.fftfreq(size)
    H = 2 * np.abs(f) * (0.54 + 0.46 * np.cos(2 * np.pi * f))
    return np.real(np.fft.ifft(np.fft.fft(sinogram, size, axis=1) * H, axis=1))[:, :n]


def back_project(filtered, angles):
    n = filtered.shape[1]
    mid = (n - 1) / 2
    y, x = np.indices((n, n)) - mid
    out = np.zeros((n, n))
    for row, a in zip(filtered, angles):
        t = x * np.cos(a) + y * np.sin(a) + mid
        out += np.interp(t.ravel(), np.arange(n), row, left=0, right=0).reshape(n, n)
    return out * np.pi / (2 * len(angles))


n = 160
image = phantom(n)
angles = np.linspace(0, np.pi, 180, endpoint=False)
sinogram = np.array([rotate(image, a).sum(axis=0) for a in angles])
sinogram += np.random.default_rng(5).normal(0, 0.2, sinogram.shape)
filtered = ramp_filter(sinogram)
reco = back_project(filtered, angles)
inside = image > 0
print(sinogram.shape, f"{sinogram.max():.5f} {filtered.std():.6f}")
for name, candidate in (("plain", back_project(sinogram, angles) / n), ("filtered", reco), ("clipped", np.clip(reco, 0, 1))):
    rmse = np.sqrt(np.mean((candidate - image)[inside] ** 2))
    corr = np.corrcoef(candidate.ravel(), image.ravel())[0, 1]
    print(f"{name:8s} {rmse:.6f} {corr:.6f}")

estimate = np.zeros((n, n))
few = angles[::6]
for sweep in range(2):
    for k, a in enumerate(few):
        error = sinogram[6 * k] - rotate(estimate, a).sum(axis=0)
        estimate = np.clip(estimate + 0.5 * rotate(np.tile(error / n, (n, 1)), -a), 0, None)
    print("art", sweep, f"{np.sqrt(np.mean((estimate - image)[inside] ** 2)):.6f}")
