"""A laboratory's day: read a table from text, drop outliers, calibrate, propagate errors, fit a decay by Gauss-Newton."""
import io

import numpy as np


def fake_file(seed):
    rng = np.random.default_rng(seed)
    lines = ["# time [s], detector A, detector B, flag"]
    for t in np.arange(0, 600, 0.02):
        a = 5000 * np.exp(-t / 140) + 120 + rng.normal(0, 12)
        b = 0.8 * a + 30 + rng.normal(0, 9)
        if rng.random() < 0.01:
            a *= 3
        flag = "bad" if rng.random() < 0.02 else "ok"
        lines.append(f"{t:.2f}, {a:.3f}, {b:.3f}, {flag}")
    return io.StringIO("\n".join(lines))


def model(t, p):
    return p[0] * np.exp(-t / p[1]) + p[2]


def jacobian(t, p):
    e = np.exp(-t / p[1])
    return np.column_stack([e, p[0] * e * t / p[1] ** 2, np.ones_like(t)])


def gauss_newton(t, y, sigma, p0, iterations=30):
    p = np.array(p0, dtype=float)
    for k in range(iterations):
        r = (y - model(t, p)) / sigma
        J = jacobian(t, p) / sigma[:, None]
        step, *_ = np.linalg.lstsq(J, r, rcond=None)
        p += step
        if np.all(np.abs(step) < 1e-9 * np.abs(p)):
            break
    cov = np.linalg.inv(J.T @ J)
    return p, np.sqrt(np.diag(cov)), np.sum(r**2) / (len(t) - len(p)), k


def sigma_clip(y, width=201, n_sigma=5):
    half = width // 2
    good = np.ones(len(y), dtype=bool)
    for i in range(len(y)):
        window = y[max(0, i - half):i + half + 1]
        med = np.median(window)
        mad = 1.4826 * np.median(np.abs(window - med))
        good[i] = abs(y[i] - med) < n_sigma * mad + 40
    return good


data = np.genfromtxt(fake_file(14), delimiter=",", dtype=None, encoding="utf-8", names=["t", "a", "b", "flag"], autostrip=True, comments="#")
ok = data["flag"] == "ok"
t, a, b = data["t"][ok], data["a"][ok], data["b"][ok]
good = sigma_clip(a[::3])
print(len(data), ok.sum(), len(good), (~good).sum())
t, a, b = t[::3][good], a[::3][good], b[::3][good]
slope, intercept = np.polyfit(a, b, 1)
residual = b - (slope * a + intercept)
print("calibration %.6f %.4f, scatter %.5f, r %.7f" % (slope, intercept, residual.std(ddof=2), np.corrcoef(a, b)[0, 1]))
combined = (a / 12**2 + (b - 30) / 0.8 / 11.25**2) / (1 / 12**2 + 1 / 11.25**2)
sigma = np.full(len(t), 1 / np.sqrt(1 / 12**2 + 1 / 11.25**2))
p, err, chi2, its = gauss_newton(t, combined, sigma, [4000, 100, 50])
for name, v, e in zip(("amplitude", "lifetime", "background"), p, err):
    print(f"{name:10s} {v:.4f} +- {e:.4f}")
print("chi2/dof %.5f after %d" % (chi2, its))

minutes = np.floor(t / 60).astype(int)
means = np.array([combined[minutes == k].mean() for k in np.unique(minutes)])
spread = np.array([combined[minutes == k].std() for k in np.unique(minutes)])
print(np.round(means, 3)[:3], np.round(spread, 3)[-2:])
with np.errstate(invalid="ignore"):
    logs = np.log(combined - p[2])
print(np.isnan(logs).sum() < len(logs) // 2, "%.4f" % np.nanmean(logs[:1000]))
