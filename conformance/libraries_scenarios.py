"""Scripts for libraries without tests for arrays of others: the same calls with NumPy's and dcarray's arrays.

Each scenario is a function that gets a constructor of arrays and returns named steps.  Every step is a test:
it runs with arrays of NumPy and with arrays of dcarray, and the results must be the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import dcarray as dc

__all__ = ["SCENARIOS", "Make", "Steps", "difference", "outcomes", "random", "scenario"]

Make = Callable[[Any], Any]
Steps = dict[str, Callable[[], Any]]
SCENARIOS: dict[str, dict[str, Callable[[Make], Steps]]] = {}


def scenario(function: Callable[[Make], Steps]) -> Callable[[Make], Steps]:
    """Register a function named ``library_what`` as a scenario of the library."""
    library, _, what = function.__name__.partition("_")
    SCENARIOS.setdefault(library, {})[what] = function
    return function


def difference(ours: Any, theirs: Any, place: str = "result") -> str:
    """Return text that says how two results differ, or ""."""
    if isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return f"{place}: {len(ours)} parts instead of {len(theirs)}"
        parts = (difference(a, b, f"{place}[{k}]") for k, (a, b) in enumerate(zip(ours, theirs, strict=True)))
        return next(filter(None, parts), "")
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{place}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    same = np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    return "" if same else f"{place}: other values"


def _wrapped(values: Any) -> Any:
    return dc.asarray(np.array(values))


def outcomes(library: str, chosen: str = "") -> dict[str, str]:
    """Run the scenarios of a library, or only the chosen one.

    Returns
    -------
    dict
        For each ``library::scenario::step`` the error with dcarray's arrays, empty if there is none.

    Raises
    ------
    Exception
        What a step raises with NumPy's arrays: an error in the scenario itself.
    """
    found = {}
    for what, make in SCENARIOS[library].items():
        if chosen not in ("", what):
            continue
        ours, theirs = make(_wrapped), make(np.array)
        for step, run in theirs.items():
            expected = run()
            try:
                message = difference(ours[step](), expected)
            except Exception as error:
                message = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            found[f"{library}::{what}::{step}"] = message
    return found


def random(*shape: int) -> np.ndarray[Any, Any]:
    """Return random values that are the same in both runs."""
    return np.random.default_rng(math.prod(shape)).normal(size=shape)


# ---- einops: einops.array_api is its door for namespaces it has no backend for ------------------------
@scenario
def einops_array_api(array: Make) -> Steps:
    module = import_module("einops.array_api")
    x, y = array(random(12, 40, 60)), array(random(30, 40))
    tall, flat = array(random(30, 40, 5)), array(random(30, 7, 5))
    steps: Steps = {
        "transposed": lambda: module.rearrange(x, "b h w -> h b w"),
        "split": lambda: module.rearrange(x, "(b c) h w -> b (h w) c", c=3),
        "tiles": lambda: module.rearrange(x, "b (h dh) (w dw) -> b (h w) (dh dw)", dh=4, dw=5) + 1.0,
        "list": lambda: module.rearrange([y, y + 1], "list a b -> a b list"),
        "repeat": lambda: module.repeat(y, "h w -> h w c", c=20),
        "enlarge": lambda: module.repeat(y, "h w -> (h dh) (w dw)", dh=5, dw=6),
        "any": lambda: module.reduce(y > 2, "a b -> a", "any"),
        "pack": lambda: module.pack([tall, flat], "h * c"),
        "unpack": lambda: module.unpack(x * 2, [(4, 10), (20,)], "b h *"),
    }
    for name in ("sum", "mean", "max", "min", "prod"):
        steps[name] = partial(module.reduce, x, "b (h dh) w -> b h w", name, dh=4)
    return steps


@scenario
def einops_backends(array: Make) -> Steps:
    einops = import_module("einops")
    x, y = array(random(30, 40)), array(random(40, 50))
    return {
        "rearrange": lambda: einops.rearrange(x, "h w -> w h"),
        "reduce": lambda: einops.reduce(x, "h w -> h", "sum"),
        "repeat": lambda: einops.repeat(x, "h w -> h w c", c=3),
        "einsum": lambda: einops.einsum(x, y, "a b, b c -> a c"),
        "asnumpy": lambda: einops.asnumpy(x),
        "parse_shape": lambda: list(einops.parse_shape(x, "h w").values()),
    }


# ---- pandas ------------------------------------------------------------------------------------------
def _parts(value: Any) -> Any:
    """Return a Series, DataFrame or Index as lists of its parts, and any other value unchanged."""
    pandas = import_module("pandas")
    if isinstance(value, pandas.DataFrame):
        columns = [_parts(value[name]) for name in value.columns]
        return [list(map(str, value.columns)), _parts(value.index), *columns]
    if isinstance(value, pandas.Series):
        return [str(value.dtype), _parts(value.index), value.to_numpy()]
    if isinstance(value, pandas.Index):
        return [type(value).__name__, value.to_numpy()]
    if isinstance(value, (list, tuple)):
        return [_parts(v) for v in value]
    return value


def _compared(steps: Steps) -> Steps:
    """Return the steps with their results converted by `_parts`."""
    return {name: lambda run=run: _parts(run()) for name, run in steps.items()}  # type: ignore[misc]


@scenario
def pandas_frames(array: Make) -> Steps:
    pandas = import_module("pandas")
    x, k, square = array(random(20_000)), array(np.arange(20_000) % 7), array(random(200, 100))
    frame = pandas.DataFrame({"x": x, "k": k})
    left = pandas.DataFrame({"k": array(np.arange(500)), "x": array(random(500))})
    right = pandas.DataFrame({"k": array(np.arange(0, 1000, 2)), "y": array(random(500))})
    return _compared(
        {
            "Series": lambda: pandas.Series(x > 0),
            "DataFrame of columns": lambda: pandas.DataFrame({"x": x, "y": np.sqrt(x * x + 1)}),
            "DataFrame of rows": lambda: pandas.DataFrame(square),
            "assign": lambda: frame.assign(z=x - k),
            "describe": lambda: frame.describe(),
            "Index": lambda: pandas.Index(x),
            "index": lambda: pandas.Series(x[:500], index=k[:500]),
            "array": lambda: pandas.array(x),
            "merge": lambda: left.merge(right, on="k"),
            "concat": lambda: pandas.concat([left, right]),
            "reindex": lambda: pandas.Series(random(500)).reindex(array([120, 5])),
        }
    )


@scenario
def pandas_groups(array: Make) -> Steps:
    pandas = import_module("pandas")
    x, k = array(random(20_000)), array(np.arange(20_000) % 7)
    frame = pandas.DataFrame({"x": x, "k": k})
    return _compared(
        {
            "by column": lambda: frame.groupby("k").x.agg(["sum", "mean", "max"]),
            "by array": lambda: frame.groupby(k).x.agg(["sum", "mean", "max"]),
            "crosstab": lambda: pandas.crosstab(k, x > 0),
            "pivot_table": lambda: frame.pivot_table(values="x", index="k", aggfunc="std"),
            "rolling": lambda: frame.x.rolling(5).mean(),
            "cumsum": lambda: frame.x.cumsum(),
            "rank": lambda: frame.x.rank(),
            "value_counts": lambda: frame.k.value_counts(),
        }
    )


@scenario
def pandas_selection(array: Make) -> Steps:
    pandas = import_module("pandas")
    x, rows = array(random(20_000)), array(np.arange(0, 20_000, 3))
    series = pandas.Series(random(20_000))

    def assigned(where: Any, value: Any) -> Any:
        changed = series.copy()
        changed.iloc[where] = value
        return changed

    return _compared(
        {
            "mask": lambda: series[x > 1],
            "loc mask": lambda: series.loc[x > 1],
            "iloc": lambda: series.iloc[rows],
            "loc": lambda: series.loc[rows],
            "take": lambda: series.take(rows),
            "where": lambda: series.where(x > 0, x),
            "isin": lambda: series.isin(x[:50]),
            "assign rows": lambda: assigned(rows, x[rows]),
            "assign all": lambda: assigned(slice(None), x),
        }
    )


@scenario
def pandas_arithmetic(array: Make) -> Steps:
    pandas = import_module("pandas")
    x, wide = array(random(20_000)), array(random(100, 200))
    series, frame = pandas.Series(random(20_000) + 1), pandas.DataFrame(random(100, 200))
    return _compared(
        {
            "series + array": lambda: series + x,
            "array + series": lambda: x + series,
            "array < series": lambda: x < series,
            "ufunc": lambda: np.maximum(series, x),
            "ufunc, array first": lambda: np.maximum(x, series),
            "frame / array": lambda: np.exp(frame) / wide,
            "array - frame": lambda: wide - frame,
            "frame > array": lambda: frame > wide,
            "frame @ array": lambda: frame @ array(random(200, 3)),
            "dot": lambda: series.dot(x),
            "corr": lambda: series.corr(pandas.Series(x)),
        }
    )


@scenario
def pandas_functions(array: Make) -> Steps:
    pandas = import_module("pandas")
    x, k = array(random(20_000)), array(np.arange(20_000) % 7)
    return _compared(
        {
            "cut": lambda: pandas.cut(x, 5).codes,
            "cut at edges": lambda: pandas.cut(x, array(np.linspace(-9, 9, 4))).codes,
            "qcut": lambda: pandas.qcut(x, 4).codes,
            "factorize": lambda: pandas.factorize(k),
            "unique": lambda: pandas.unique(k),
            "isna": lambda: pandas.isna(x),
            "get_dummies": lambda: pandas.get_dummies(k),
            "from_codes": lambda: pandas.Categorical.from_codes(k, list("abcdefg")).codes,
            "to_datetime": lambda: pandas.to_datetime(k, unit="D"),
            "to_numeric": lambda: pandas.to_numeric(k),
            "merge_asof": lambda: pandas.merge_asof(
                pandas.DataFrame({"t": np.sort(x)}), pandas.DataFrame({"t": np.sort(x)[::2], "v": x[::2]})
            ),
        }
    )
