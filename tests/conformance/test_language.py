"""The table of the language: what it says of compiled code is so, and the page has it."""

import cmath
import copy
import functools
import inspect
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from conformance.language import ROWS, Row, arguments, source, table
from dcarray.core.counters import settle


def call(function: Any, row: Row) -> Any:
    args = copy.deepcopy(arguments())
    if "g(" in row.body:
        args = *args, inspect.unwrap(function).__globals__["h"]
    return function(*args)


def made(row: Row) -> Any:
    return written(source(row), np=np, math=math, cmath=cmath, random=random, functools=functools)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row: Row) -> None:
    want = call(made(row), row)
    with dc.options(jit="eager", cache_dir=None):
        f = made(row)
        g = dc.accelerate(f)
        before = settle().loops
        got = call(g, row)
        compiled = settle().loops > before
    assert type(got) is type(want)
    if isinstance(want, np.ndarray):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    else:
        assert got == pytest.approx(want, rel=1e-13) if isinstance(want, float) else got == want
    assert compiled == (row.compiled == "yes"), [one.function for one in dc.report().fallbacks]


def test_the_page_has_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "language.md"
    assert table() in page.read_text(), "put what python -m conformance.language prints into docs/language.md"
