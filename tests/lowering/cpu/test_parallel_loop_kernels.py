"""Kernels of loops whose iterations run in parallel."""

import random

import numpy as np
import pytest
from plan_runs import run_plan
from sweep_regions import sweeps

from dcarray.ir import interp
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu import strip_mining as module
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.strip_mining import STRIP_MINING
from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region


def refuse(reason, loc):
    raise AssertionError(reason)


def agree(before, after, seed=0, target="cpu", threads=0):
    """The compiled region against what the other one means."""
    rng = np.random.default_rng(seed)
    given = {
        array.name: np.asarray(rng.integers(-3, 4, array.shape)).astype(array.dtype)
        for array in before.arrays
        if array.role != "temp"
    }
    want = {name: array.copy() for name, array in given.items()}
    interp.run(before, want)
    plan = compile_region(after, target, threads=threads, fallback=refuse)
    for count in (1, 3):
        found = {name: array.copy() for name, array in given.items()}
        run_plan(plan, found, (), count)
        for name, array in want.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)
    return plan


@pytest.mark.parametrize("seed", range(60))
def test_random_sweeps(seed, monkeypatch):
    for name, value in (
        ("MIN_POINTS", 1), ("NEAR", 64), ("MIN_HEIGHT", 2), ("VECTOR", 1), ("RUN", 2), ("AGAIN", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    before = sweeps(random.Random(seed))
    agree(before, STRIP_MINING.fn(before, Log()), seed)
    agree(before, CPU.run(before), seed, "c" if seed % 4 == 0 else "cpu")


def test_strips_are_one_kernel_on_many_threads():
    region = parse(
        """region() {
          in a: f64[300, 300];  inout p: f64[300, 300]
          for k in range(299, 0, -1) {
            p[i,k] = add(multiply(a[i,k], 3.0), p[i,k-1]) for i<300
          }
        }"""
    )
    plan = agree(region, CPU.run(region), threads=2)
    (step,) = plan.kernels
    assert step.binding.extents == (8,)
