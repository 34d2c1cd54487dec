"""Code objects with sites that run with other global names than their module's."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.jit.loops.sites.functions import put_sites, remove_sites

scale = 2.0


def _total(n: int) -> float:
    s = 0.0
    for i in range(n):
        s += i * scale
    return s


def _halved(a: Any) -> Any:
    for i in range(len(a)):
        a[i] = a[i] * 0.5 + scale
    return a


@pytest.mark.parametrize("jit", ["eager", "background"])
def test_a_code_object_that_runs_with_other_global_names(jit: str) -> None:
    names = {"scale": 5.0, "range": range, "len": len}
    with dc.options(jit=jit):
        functions = [_total, _halved]
        try:
            for site in [site for function in functions for site in put_sites(function)]:
                site.heat()
            total, halved = [types.FunctionType(one.__code__, names) for one in functions]
            for _ in range(30):
                assert (_total(100), total(100)) == (9900.0, 24750.0)
                assert _halved(np.zeros(9))[8] == 2.0 and halved(np.zeros(9))[8] == 5.0
                dc.wait()
            names["scale"] = 1.0
            assert total(100) == 4950.0 and halved(np.zeros(9))[0] == 1.0
        finally:
            for function in functions:
                remove_sites(function)
