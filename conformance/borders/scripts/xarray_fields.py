"""A script that makes xarray's labelled arrays of a loop's arrays, and applies functions to them."""

import numpy as np
import xarray as xr


def step(u, k):
    lap = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
    return u + k * lap


rng = np.random.default_rng(2)
u = rng.random((120, 160))
frames = []
for n in range(30):
    u = step(u, 0.2)
    if n % 10 == 9:
        frames.append(xr.DataArray(u, dims=("y", "x"), coords={"x": np.linspace(0, 1, 160)}, name="u"))
cube = xr.concat(frames, dim=xr.DataArray([10, 20, 30], dims="t", name="t"))
print(cube.dims, cube.shape, type(cube.data).__name__, type(cube.values) is np.ndarray)
print(cube.mean(("x", "y")).values, cube.std("t").max().item())
print(cube.sel(t=20, x=0.5, method="nearest").sum().item(), cube.interp(x=0.333).isel(t=0, y=5).item())

scaled = xr.apply_ufunc(np.log1p, cube)
paired = xr.apply_ufunc(lambda a, b: a * 2 - b, cube, scaled)
cored = xr.apply_ufunc(lambda a: np.median(a, axis=-1), cube, input_core_dims=[["x"]])
print(scaled.sum().item(), paired.attrs, paired.mean().item(), cored.shape, cored.sum().item())

data = xr.Dataset({"u": cube, "weight": ("y", np.cos(np.linspace(-1, 1, 120)))})
data["v"] = data.u * data.weight
for _ in range(20):
    data["v"] = data.v * 0.99 + np.sin(data.u) * 0.01
print(list(data.data_vars), data.v.sum().item(), data.v.weighted(data.weight).mean().item())
print(data.groupby("t").map(lambda part: part.u.max() - part.u.min()).values)

raw = data.u.values
raw *= 2
print(np.shares_memory(raw, data.u.values), data.u.max().item(), (data.u > 1).sum().item())
mask = xr.DataArray(raw[0] > raw[0].mean(), dims=("y", "x"))
print(data.u.where(mask).count().item(), data.u.where(mask, 0.0).sum().item())
print(
    isinstance(np.exp(cube), xr.DataArray),
    isinstance(np.exp(cube.values), np.ndarray),
    (np.ones((120, 160)) * cube).dims,
)
print(
    cube.stack(z=("y", "x")).argmax("z").values,
    cube.coarsen(x=4, y=4).mean().shape,
    cube.diff("t").sum().item(),
)
