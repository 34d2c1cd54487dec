"""A script with OpenCV images, sparse arrays, and labelled arrays that change in loops."""

import cv2
import numpy as np
import scipy.sparse as sp
import sparse
import xarray as xr

t = np.arange(200.0)
da = xr.DataArray(np.sin(t)[:, None] * np.arange(30.0), dims=("t", "x"), coords={"t": t, "x": np.arange(30)})


def xs(da, n):
    r = []
    for i in range(n):
        r.append(float(da.interp(t=10.5 + i, x=3.2).values))
        da = da * 1.1 + da.mean("t")
        r.append(float(da.sel(x=4).sum()))
        d2 = da.where(da > 0, np.abs(da))
        da.values[i, :] = 0
    return np.round(r, 8), type(d2).__name__, d2.dims


print(xs(da, 5), float(da.sum()))


def vec(da, n):
    u = da.values
    for _ in range(n):
        u[1:-1] += 0.1 * (u[2:] + u[:-2] - 2 * u[1:-1])
    return da.sum().item()


print(round(vec(da, 20), 8), xr.apply_ufunc(lambda a: np.cumsum(a, -1) * 2, da).sum().item())


def spm(n):
    A = sp.diags([np.ones(999), -2 * np.ones(1000), np.ones(999)], [-1, 0, 1]).tocsr()
    x = np.linspace(0, 1, 1000)
    S = sparse.COO.from_scipy_sparse(A)
    for i in range(n):
        x = x + 0.1 * (A @ x)
        y = S @ x
        z = (S * i).todense()[3, :5]
        A.data *= 1.001
    return x.sum(), y.sum(), z, type(A @ x).__name__, type(S * 2).__name__, (S + S).nnz


print(spm(6))
img = (np.arange(120 * 90) % 251).reshape(120, 90).astype(np.uint8)


def cv(img, n):
    o = []
    for _ in range(n):
        b = cv2.GaussianBlur(img, (5, 5), 0)
        e = cv2.Canny(b, 50, 150)
        img = np.clip(img.astype(np.int16) + b - 20, 0, 255).astype(np.uint8)
        cv2.rectangle(img, (2, 2), (20, 20), 255, 1)
        img[e > 0] = img[e > 0] // 2
        o.append((int(img.sum()), int(e.sum()), img.dtype.name))
    return o, img


o, im = cv(img, 6)
print(o, im[:3, :5], img[:1, :5])


def draw(n):
    c = np.zeros((64, 64, 3), np.uint8)
    for i in range(n):
        cv2.circle(c, (i, i), 4, (255, i, 0), -1)
        c = cv2.flip(c, 1)
        c[..., 1] += 3
        v = cv2.cvtColor(c, cv2.COLOR_BGR2GRAY).mean()
    return c.sum(), v


print(draw(12))
