"""Every operation on a device with special and random operands, against NumPy."""

import numpy as np
import op_cases
import pytest
from device_runs import execute
from devices import DEVICE, KIND, needs_device

from dcarray.ir.ops import OPS
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import devices

pytestmark = needs_device

# Arithmetic has NumPy's bits; what IEEE 754 leaves open is within so many units in the last place.
ULP = 4
FUNCTIONS = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "sin", "cos", "tan", "arcsin",
    "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "hypot", "logaddexp",
    "logaddexp2", "power", "float_power", "array_power", "arctan2", "deg2rad", "rad2deg",
}  # fmt: skip
PRODUCTS = ("exp", "sin", "cos", "sinh", "cosh")  # whose parts are products of functions, if complex
CANCELS = ("logaddexp", "logaddexp2")  # sums of functions, which may cancel: relative to the operands


def distance(got, want):
    """Units in the last place of the wanted numbers; an infinity counts as the number after the largest."""
    missing = np.isnan(want)
    assert np.array_equal(np.isnan(got), missing)
    known = np.finfo(want.dtype)
    below = np.nextafter(known.max, known.dtype.type(0))  # above it NumPy has no spacing
    unit = np.spacing(np.clip(np.abs(want[~missing]), known.tiny, below)).astype(np.longdouble)
    after = np.longdouble(known.max) + np.spacing(below)
    got, want = (np.clip(x[~missing].astype(np.longdouble), -after, after) for x in (got, want))
    return float((np.abs(got - want) / unit).max(initial=0))


def bits(array):
    """Bytes of the numbers, with one NaN for all."""
    array = array.copy()
    for part in (array.real, array.imag) if array.dtype.kind == "c" else (array,):
        if array.dtype.kind in "fc":
            part[np.isnan(part)] = np.nan
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, -1)


@pytest.mark.parametrize("name", OPS)
def test_an_operation_is_numpys(name):
    device = devices.get(DEVICE)
    for kinds, result in op_cases.loops(name):
        given = op_cases.operands(kinds)
        reasons = []
        region = op_cases.region(name, kinds, result, given[0].size)
        plan = compile_region(region, KIND, fallback=lambda reason, loc, all=reasons: all.append(reason))
        if reasons:
            continue
        got = execute(plan, {f"a{k}": x for k, x in enumerate(given)}, {}, device)["o"]
        want = op_cases.reference(name, given, result)
        if name[:2] == "c_":  # where Python raises an error, loops check for a result that is not finite
            raises = np.isnan(want)
            assert not np.isfinite(got[raises]).any(), kinds
            got, want = got[~raises], want[~raises]
        is_complex = kinds[0].kind == "c"
        if name in FUNCTIONS or name[:2] == "c_" or (name in ("absolute", "sqrt") and is_complex):
            parts = [(got.real, want.real), (got.imag, want.imag)] if result.kind == "c" else [(got, want)]
            if name in CANCELS:
                with np.errstate(all="ignore"):
                    size = np.maximum(1, np.maximum(abs(given[0]), abs(given[1])))
                    parts = [(got / size + 1, want / size + 1)]
            most = 2 * ULP if is_complex and name in PRODUCTS else ULP
            assert max(distance(*pair) for pair in parts) <= most, (kinds, result)
        else:
            wrong = (bits(got) != bits(want)).any(axis=1)
            if name == "cast" and result == np.uint32 and kinds[0].kind in "fc":
                with np.errstate(all="ignore"):  # out of range, NumPy's loops differ
                    wrong &= np.abs(given[0].real) < 2.0**62
            assert not wrong.any(), (kinds, result, [x[wrong][:5] for x in given], got[wrong][:5])
