"""Programs on a device: their regions, compiled for it once for all sizes, beside NumPy."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import DEVICE, needs_device
from program_runs import arguments_of, module
from symbolic_sources import FAMOUS, random_program

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.jit.program.decorator import Program
from dcarray.lowering.gpu import devices as table

pytestmark = needs_device
SIZES = [{"N": 12, "M": 17, "T": 3}, {"N": 23, "M": 11, "T": 2}, {"N": 64, "M": 70, "T": 2}]


def on_device(x: Any) -> Any:
    return dc.asarray(x, device=DEVICE) if isinstance(x, np.ndarray) and x.ndim else x


def check(program: Program, sizes: dict[str, int], seed: int, option: bool, below: int = 0) -> None:
    """Compare a program whose arrays are on the device with NumPy."""
    values = arguments_of(program.written, sizes, seed)
    expected_values = copy.deepcopy(values)
    around = {**program.written.__globals__, "N": sizes["N"], "M": sizes["M"]}
    expected = type(program.written)(program.written.__code__, around)(*expected_values)
    with dc.options(device=DEVICE if option else "cpu", eager_below=below):
        given = values if option else [on_device(v) for v in values]
        found = program(*given)
    several = found if isinstance(found, tuple) else (found,)
    others = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip((*given, *several), (*expected_values, *others), strict=True):
        np.testing.assert_allclose(
            np.asarray(one).astype(float), np.asarray(other, float), rtol=1e-11, atol=1e-11
        )
    for one, other in zip(several, others, strict=True):
        if not isinstance(other, np.ndarray):
            assert type(one) is type(other)
        elif option:
            assert type(one) is np.ndarray
        else:
            assert one.device == DEVICE


@pytest.mark.parametrize("option", [False, True])
@pytest.mark.parametrize("name", ["jacobi", "two_products", "strided"])
def test_known_programs(name: str, option: bool, tmp_path: Path, written: list[str]) -> None:
    program = dc.program(getattr(module(tmp_path, FAMOUS, f"device_{name}_{option}"), name))
    for k, sizes in enumerate(SIZES):
        check(program, sizes, 0, option, below=0 if k % 2 else 200)
    assert not written


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    program = dc.program(module(tmp_path, random_program(seed), f"device_random_{seed}").f)
    for sizes in SIZES:
        check(program, sizes, seed, seed % 2 == 0)


def test_all_sizes_have_one_plan_and_arrays_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: Any = table.get(DEVICE)
    moved: list[str] = []
    for name in ("upload", "download"):
        known = getattr(type(there), name)

        def counted(*args: Any, known: Any = known, name: str = name) -> None:
            moved.append(name)
            known(*args)

        monkeypatch.setattr(type(there), name, counted)
    program = dc.program(module(tmp_path, FAMOUS, "device_sizes").jacobi)
    for n in (150, 40, 151):
        a, b = np.random.default_rng(n).random((2, n, n))
        expected = a.copy(), b.copy()
        program.written(*expected, 6)
        with dc.options(eager_below=0):
            A, B = on_device(a), on_device(b)
            moved.clear()
            for _ in range(3):
                program(A, B, 3)
            assert len(moved) <= 2 and set(moved) <= {"upload"}
        program.written(a, b, 3)
        program.written(a, b, 3)
        program.written(a, b, 3)
        assert np.array_equal(np.asarray(A), a)
        assert np.array_equal(np.asarray(B), b)
    assert len(program._compiled) == 1


REFUSED = """
def inverse(x: np.float64[N], s: float):
    return x * (1.0 / s)

def two(x: np.float64[N], y: np.float64[N]):
    x += y
"""


def test_what_raises_runs_again_as_it_is_written(tmp_path: Path, written: list[str]) -> None:
    program = dc.program(module(tmp_path, REFUSED, "device_refused").inverse)
    x = on_device(np.ones(5))
    assert np.array_equal(np.asarray(program(x, 2.0)), np.full(5, 0.5))
    assert not written
    with pytest.raises(ZeroDivisionError):
        program(x, 0.0)
    assert written == ["inverse"]


def test_parts_shared_memory_and_other_devices(tmp_path: Path, written: list[str]) -> None:
    program = dc.program(module(tmp_path, REFUSED, "device_two").two)
    with dc.options(eager_below=0):
        x = on_device(np.arange(6.0))
        program(x, x)
        assert np.array_equal(np.asarray(x), 2 * np.arange(6.0))
        program(x[1:], x[:-1].copy())
        assert np.array_equal(np.asarray(x), [0, 2, 6, 10, 14, 18])
        with pytest.raises(ValueError, match="on different devices"):
            program(x, dc.asarray(np.arange(6.0)))
        with np.errstate(over="raise"):
            y = on_device(np.ones(6))
            program(y, x)
        assert np.array_equal(np.asarray(y), np.asarray(x) + 1.0)
    assert len(written) == 3  # a part that shares no memory is copied


def test_runs_are_counted(tmp_path: Path) -> None:
    program = dc.program(module(tmp_path, REFUSED, "device_counted").two)
    before = counters.loops
    program(on_device(np.ones(9)), on_device(np.ones(9)))
    assert counters.loops == before + 1
