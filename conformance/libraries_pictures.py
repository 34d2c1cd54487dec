"""Scenarios for matplotlib: figures of NumPy's and of dcarray's arrays must have the same pixels."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from .libraries_scenarios import SCENARIOS, Make, Steps, random, scenario

__all__ = ["SCENARIOS"]


def _pixels(draw: Callable[[Any], object], **axes: Any) -> Any:
    """Return the pixels of a figure with one set of axes."""
    figure = import_module("matplotlib.figure").Figure(figsize=(4, 3), dpi=80)
    canvas = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    draw(figure.add_subplot(**axes))
    canvas.draw()
    return np.array(canvas.buffer_rgba())


def _drawn(steps: dict[str, Callable[[Any], object]], **axes: Any) -> Steps:
    return {name: lambda draw=draw: _pixels(draw, **axes) for name, draw in steps.items()}  # type: ignore[misc]


@scenario
def matplotlib_lines(array: Make) -> Steps:
    t, y, some = array(np.linspace(0, 7, 20_000)), array(random(20_000)), array(random(40))
    low, high = np.minimum(y[::500], 0), np.maximum(y[::500], 1)
    days = array(np.arange("2024-01", "2024-02", dtype="datetime64[D]"))
    return _drawn(
        {
            "plot": lambda ax: ax.plot(t, np.sin(t) + y / 9, t, np.cos(t)),
            "plot columns": lambda ax: ax.plot(array(random(200, 100))[:, :5]),
            "plot with gaps": lambda ax: ax.plot(t, np.where(y > 1, np.nan, y)),
            "logarithmic": lambda ax: ax.loglog(t + 1, np.exp(t)),
            "dates": lambda ax: ax.plot(days, array(random(31))),
            "errorbar": lambda ax: ax.errorbar(t[::500], y[::500], yerr=np.abs(some)),
            "fill_between": lambda ax: ax.fill_between(t[::500], low, high, where=y[::500] > 0),
            "step": lambda ax: ax.step(t[::500], some),
            "stem": lambda ax: ax.stem(t[::500], some),
            "vlines": lambda ax: ax.vlines(some, low, high),
            "limits": lambda ax: (ax.plot([0, 1]), ax.set_xlim(t[0], t[-1]), ax.set_ylim(y.min(), y.max())),
            "ticks": lambda ax: (ax.set_xticks(t[::5000]), ax.axhline(y[3])),
        }
    )


@scenario
def matplotlib_distributions(array: Make) -> Steps:
    x, y, k = array(random(20_000)), array(random(20_001)[1:]), array(np.arange(7))
    return _drawn(
        {
            "scatter": lambda ax: ax.scatter(x, y, c=np.hypot(x, y), s=np.abs(x) * 9, alpha=0.5),
            "hist": lambda ax: ax.hist(x, bins=array(np.linspace(-3, 3, 30)), weights=np.abs(y)),
            "hist of two": lambda ax: ax.hist([x, y], bins=20, density=True),
            "hist2d": lambda ax: ax.hist2d(x, y, bins=30),
            "hexbin": lambda ax: ax.hexbin(x, y, gridsize=20),
            "bar": lambda ax: ax.bar(k, x[:7], yerr=np.abs(y[:7])),
            "barh": lambda ax: ax.barh(k, x[:7], left=y[:7]),
            "pie": lambda ax: ax.pie(np.abs(x[:7])),
            "hist of columns": lambda ax: ax.hist(x.reshape(-1, 4)),
            "boxplot": lambda ax: ax.boxplot([x, y]),
            "boxplot of columns": lambda ax: ax.boxplot(x.reshape(-1, 4)),
            "violinplot": lambda ax: ax.violinplot([x[:2000], y[:2000]]),
            "violinplot of columns": lambda ax: ax.violinplot(x[:2000].reshape(-1, 4)),
            "stackplot": lambda ax: ax.stackplot(k, np.abs(x[:7]), np.abs(y[:7])),
            "specgram": lambda ax: ax.specgram(x, Fs=100),
            "psd": lambda ax: ax.psd(x, NFFT=512),
            "xcorr": lambda ax: ax.xcorr(x, y),
        }
    )


@scenario
def matplotlib_fields(array: Make) -> Steps:
    colors, norms = import_module("matplotlib.colors"), import_module("matplotlib.colors")
    u, v = array(np.linspace(-3, 3, 200)), array(np.linspace(-2, 2, 150))
    z = np.sin(u)[None, :] * np.exp(-(v[:, None] ** 2))
    rgb = array(np.clip(random(150, 200, 3) / 4 + 0.5, 0, 1))
    light = colors.LightSource()
    return _drawn(
        {
            "imshow": lambda ax: ax.imshow(z, cmap="magma"),
            "imshow with gaps": lambda ax: ax.imshow(np.where(z > 0.5, np.nan, z)),
            "imshow of colours": lambda ax: ax.imshow(rgb),
            "imshow, logarithmic": lambda ax: ax.imshow(np.abs(z) + 0.01, norm=norms.LogNorm()),
            "pcolormesh": lambda ax: ax.pcolormesh(u, v, z, vmin=-0.5),
            "pcolor": lambda ax: ax.pcolor(u[::10], v[::10], z[::10, ::10]),
            "contour": lambda ax: ax.contour(u, v, z, levels=array([-0.5, 0.0, 0.5])),
            "contourf": lambda ax: ax.contourf(u, v, z),
            "quiver": lambda ax: ax.quiver(u[::9], v[::9], z[::9, ::9], z[::9, ::9] * 2),
            "streamplot": lambda ax: ax.streamplot(u, v, z, z + 1),
            "hillshade": lambda ax: ax.imshow(light.hillshade(z, vert_exag=3)),
            "shade": lambda ax: ax.imshow(light.shade(z, import_module("matplotlib").colormaps["terrain"])),
            "tricontourf": lambda ax: ax.tricontourf(z[::9, 0], z[0, : z[::9].shape[0]], z[::9, 7]),
            "spy": lambda ax: ax.spy(z > 0.3),
            "matshow": lambda ax: ax.matshow(z[:20, :20]),
        }
    )


@scenario
def matplotlib_colors(array: Make) -> Steps:
    module = import_module("matplotlib.colors")
    maps = import_module("matplotlib").colormaps
    x = array(random(150, 200))
    rgb = array(np.clip(random(40, 3) / 4 + 0.5, 0, 1))
    return {
        "colormap": lambda: maps["viridis"](x),
        "bytes": lambda: maps["viridis"](x, bytes=True),
        "Normalize": lambda: np.ma.getdata(module.Normalize()(x)),
        "inverse": lambda: module.Normalize(-2, 3).inverse(x),
        "TwoSlopeNorm": lambda: np.ma.getdata(module.TwoSlopeNorm(0.1)(x)),
        "BoundaryNorm": lambda: np.ma.getdata(module.BoundaryNorm(array([-1.0, 0.0, 2.0]), 3)(x)),
        "rgb_to_hsv": lambda: module.rgb_to_hsv(rgb),
        "hsv_to_rgb": lambda: module.hsv_to_rgb(rgb),
        "to_rgba_array": lambda: module.to_rgba_array(rgb),
    }


@scenario
def matplotlib_projections(array: Make) -> Steps:
    import_module("mpl_toolkits.mplot3d")
    t, x = array(np.linspace(0, 6, 200)), array(random(40, 30))
    grid = np.meshgrid(np.arange(30.0), np.arange(40.0))
    steps: dict[str, Callable[[Any], object]] = {
        "plot": lambda ax: ax.plot(np.cos(t), np.sin(t), t),
        "scatter": lambda ax: ax.scatter(x[0], x[1], x[2], c=x[3]),
        "surface": lambda ax: ax.plot_surface(*map(array, grid), x),
        "wireframe": lambda ax: ax.plot_wireframe(*map(array, grid), x),
    }
    polar: dict[str, Callable[[Any], object]] = {"polar": lambda ax: ax.plot(t, np.sin(3 * t))}
    return {**_drawn(steps, projection="3d"), **_drawn(polar, projection="polar")}
