"""Arrays of several devices: what is refused at the call, and what goes along."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up_device import MadeUpDevice, make_up

import dcarray as dc

N = 20_000


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> list[MadeUpDevice]:
    """Two made-up devices."""
    found = [MadeUpDevice("made-up:0", "made-up"), MadeUpDevice("made-up:1", "made-up")]
    make_up(monkeypatch, *found)
    return found


MIXED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "compare": lambda x, y: x < y,
    "in place": lambda x, y: x.__iadd__(y),
    "power": lambda x, y: x**y,
    "ufunc": np.hypot,
    "out": lambda x, y: np.add(x, 1, out=y),
    "where": lambda x, y: np.where(x > 0, x, y),
    "where=": lambda x, y: np.add(x, 1, where=y > 0, out=x),
    "matmul": lambda x, y: x @ y,
    "dot": lambda x, y: np.dot(x, y),
    "method": lambda x, y: x.dot(y),
    "outer": lambda x, y: np.multiply.outer(x[:5], y[:5]),
    "join": lambda x, y: np.concatenate([x, y]),
    "stack": lambda x, y: np.stack([x, y]),
    "einsum": lambda x, y: np.einsum("i,i", x, y),
    "assign": lambda x, y: x.__setitem__(..., y),
    "assign a part": lambda x, y: x.__setitem__(slice(0, 5), y[:5]),
    "mask": lambda x, y: x[y > 0],
    "assign by a mask": lambda x, y: x.__setitem__(y > 0, 1),
    "numpy's": lambda x, y: np.interp(x, y, y),
    "clip": lambda x, y: np.clip(x, y, 3),
}


@pytest.mark.parametrize("size", [N, 6])
@pytest.mark.parametrize(
    ("first", "second"), [("made-up:0", "cpu"), ("cpu", "made-up:0"), ("made-up:1", "made-up:0")]
)
@pytest.mark.parametrize("call", MIXED.values(), ids=MIXED)
def test_different_devices_are_refused_at_the_call(
    call: Callable[[Any, Any], Any], first: str, second: str, size: int
) -> None:
    x, y = dc.ones(size, device=first), dc.ones(size, device=second)
    with pytest.raises(ValueError, match="different devices") as told:
        call(x, y)
    assert first in str(told.value) and second in str(told.value)
    assert float(x[0]) == float(y[0]) == 1.0


@pytest.mark.parametrize("size", [N, 6])
def test_plain_arrays_and_scalars_go_along(size: int) -> None:
    a = np.arange(float(size))
    x = dc.asarray(a, device="made-up:0")
    for y in (
        x + a, a + x, x * 2, 2 * x, x + np.float64(2), np.add(a, x), x + dc.asarray(2.0),
        dc.asarray(2.0) + x,
    ):  # fmt: skip
        assert y.device == "made-up:0"
    assert np.array_equal(np.asarray(a + x), 2 * a)
    assert np.array_equal(np.asarray(dc.asarray(2.0) + x), 2 + a)
    x[...] = a[::-1]
    assert np.array_equal(np.asarray(x), a[::-1])
    assert np.add(x, 1, out=a) is a and a[0] == size
    x += a
    x[:3] = [1, 2, 3]
    assert x.device == "made-up:0" and float(x[2]) == 3.0
    zero = dc.asarray(1.5, device="made-up:0")
    y = dc.ones(size) + zero
    assert y.device == "cpu" and float(y[0]) == 2.5
    c = dc.ones(size)
    c += zero
    c[1] = zero
    assert c.device == "cpu" and list(np.asarray(c)[:3]) == [2.5, 1.5, 2.5]


def test_results_views_and_methods_stay_on_the_device() -> None:
    a = np.arange(float(N)).reshape(100, 200)
    x = dc.asarray(a, device="made-up:0")
    calls: list[Callable[[Any], Any]] = [
        lambda x: x.T, lambda x: x[3], lambda x: x[1:5, ::-2], lambda x: x[x > 5], lambda x: x[[1, 2]],
        np.sqrt, lambda x: x.sum(axis=0), lambda x: np.cumsum(x, axis=1), lambda x: x.reshape(-1),
        lambda x: x.astype("f4"), lambda x: np.linalg.qr(x).R, lambda x: np.split(x, 2)[1],
        lambda x: x.copy(), copy.copy, copy.deepcopy, lambda x: np.pad(x, 1), lambda x: np.sort(x),
        lambda x: x.real, lambda x: np.zeros_like(x), np.argsort,
        lambda x: np.apply_along_axis(lambda v: v * 2, 0, x), lambda x: np.meshgrid(x[0], x[1])[0],
        lambda x: x @ x.T, lambda x: x.mean(axis=1), lambda x: np.unique(x), lambda x: np.tile(x, 2),
        lambda x: x.base, lambda x: abs(x), lambda x: np.divmod(x, 2)[1], lambda x: x.flatten(),
        lambda x: np.take(x, [1, 2], axis=0),
    ]  # fmt: skip
    for k, call in enumerate(calls):
        got = call(x)
        if k != 26:  # the base of an array that owns its memory
            assert got.device == "made-up:0", k
            assert np.allclose(np.asarray(got), call(a)), k
    assert float(x.max()) == a.max() and int(x.argmin()) == 0


def test_classes() -> None:
    x, y = dc.ones(N, device="made-up:0"), dc.ones(3, device="made-up:0")
    assert type(x) is type(y) is not type(dc.ones(N, device="made-up:1"))
    assert isinstance(x, dc.ndarray) and type(x).__name__ == "ndarray"
    assert repr(y) == "array([1., 1., 1.])" and str(x + 1)[:3] == "[2."
    again = pickle.loads(pickle.dumps(x + 1))
    assert type(again) is type(x) and float(again[0]) == 2.0


def test_to_device() -> None:
    x = dc.arange(float(N), device="made-up:0")
    there = x.to_device("made-up:1")
    back = there.to_device("cpu")
    assert (there.device, back.device, type(back)) == ("made-up:1", "cpu", dc.ndarray)
    assert x.to_device("made-up:0") is x and back.to_device("cpu") is back
    back += 1
    assert float(x[0]) == float(there[0]) == 0.0 and float(back[0]) == 1.0
    with pytest.raises(ValueError, match=r"no device 'made-up:7'.*made-up:0, made-up:1"):
        x.to_device("made-up:7")


def test_creation(devices: list[MadeUpDevice]) -> None:
    made = {
        "zeros": dc.zeros((100, 200), device="made-up:0"),
        "ones": dc.ones(N, "i4", device="made-up:0"),
        "full": dc.full(N, 2.5, device="made-up:0"),
        "empty": dc.empty(N, device="made-up:0"),
        "eye": dc.eye(200, device="made-up:0"),
        "arange": dc.arange(N, device="made-up:0"),
        "linspace": dc.linspace(0, 1, N, device="made-up:0"),
        "asarray": dc.asarray(list(range(N)), device="made-up:0"),
        "like": dc.zeros_like(dc.ones(N), device="made-up:0"),
        "full like": dc.full_like(dc.ones(N, device="made-up:1"), 3, device="made-up:0"),
        "fftfreq": dc.fft.fftfreq(N, device="made-up:0"),
        "array": dc.array([[1, 2], [3, 4]], device="made-up:0"),
        "strings": dc.asarray(["a", "b"], device="made-up:0"),
        "none": dc.zeros((0, 3), device="made-up:0"),
    }
    assert {x.device for x in made.values()} == {"made-up:0"}
    uploads = devices[0].uploads
    x = dc.evaluate(dc.zeros(N, device="made-up:0") + 1)
    assert devices[0].uploads == uploads and float(x[-1]) == 1.0
    assert list(np.asarray(made["array"]).ravel()) == [1, 2, 3, 4] and made["strings"][1] == "b"
    for call in (dc.zeros, dc.arange):
        with pytest.raises(ValueError, match="no device 'made-up:9'"):
            call(3, device="made-up:9")


def test_conversion() -> None:
    a = np.arange(float(N))
    x = dc.asarray(a, device="made-up:0")
    a[0] = 7
    assert float(x[0]) == 0.0  # a copy
    assert dc.asarray(x) is x and dc.asarray(x, device="made-up:0") is x and dc.asarray(x, x.dtype) is x
    assert (
        dc.array(x).device == dc.asarray(x, "f4").device == dc.ascontiguousarray(x.reshape(100, -1).T).device
    )
    assert (
        dc.asarray(x, device="cpu").device == "cpu"
        and dc.asarray(x, device="made-up:1").device == "made-up:1"
    )
    for given, device in ((a, "made-up:0"), (x, "cpu"), (dc.ones(3), "made-up:0")):
        with pytest.raises(ValueError, match=r"void.* copy"):
            dc.asarray(given, device=device, copy=False)
    assert dc.asarray([x[:2], x[2:4]], device="made-up:0").shape == (2, 2)


def test_the_option() -> None:
    a = np.ones(N)
    with dc.options(device="made-up:0"):
        for x in (
            dc.zeros(5), dc.zeros(N), dc.asarray(a), dc.asarray([1, 2]), dc.arange(9), dc.eye(3),
            dc.sqrt(a), dc.sum(a[None], 0), dc.random.rand(5), dc.random.default_rng(1).normal(size=N),
            dc.concatenate([a, a]), dc.r_[1:5], dc.full(4, 1), dc.ndarray((3, 4)),
        ):  # fmt: skip
            assert x.device == "made-up:0"
        c = dc.ones(N, device="cpu")
        assert (
            c.device
            == (c + 1).device
            == dc.zeros_like(c).device
            == dc.linalg.qr(c[:4].reshape(2, 2)).R.device
            == "cpu"
        )
        with dc.options(device="cpu"):
            assert dc.zeros(5).device == "cpu"
    assert dc.zeros(5).device == "cpu"
    with pytest.raises(ValueError, match="no device 'made-up:5'"), dc.options(device="made-up:5"):
        pass


def test_accelerated_functions_write_into_the_callers_arrays() -> None:
    module: dict[str, Any] = {"np": np}
    exec(
        "def f(a, b, n):\n"
        "    t = np.zeros_like(a)\n"
        "    t[1:] = a[:-1] + np.ones(1)\n"
        "    a += b\n"
        "    b[:10] = np.arange(10)\n"
        "    a[n] = 5\n"
        "    return t * 2, a.sum()\n",
        module,
    )
    f = dc.accelerate(module["f"])
    for size in (N, 40):
        a, b = np.arange(float(size)), np.ones(size)
        want, other = a.copy(), b.copy()
        first, total = module["f"](want, other, 3)
        for _ in range(3):
            x, y = np.arange(float(size)), np.ones(size)
            with dc.options(device="made-up:0"):
                got, summed = f(x, y, 3)
            assert type(got) is np.ndarray and np.array_equal(got, first) and summed == total
            assert np.array_equal(x, want) and np.array_equal(y, other)


def test_standard_arrays_on_devices() -> None:
    xp = dc.array_api
    x = xp.asarray(np.arange(float(N)), device="made-up:0")
    assert x.device == "made-up:0" and type(x).__name__ == "StandardArray"
    y = xp.sum(x * 2)
    assert y.shape == () and y.device == "made-up:0" and float(y) == N * (N - 1.0)
    assert xp.concat([x, x[:3]]).device == x[3].device == "made-up:0" and type(x[3]) is type(x)
    with pytest.raises(ValueError, match="different devices"):
        x + xp.ones(N)
    assert "made-up:0" in xp.__array_namespace_info__().devices()
    assert x.to_device("cpu").device == "cpu" and type(x.to_device("cpu")) is type(xp.ones(3))


def test_loops_of_accelerated_functions_run_as_they_are_written(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("device_loops.py").write_text(
        "import numpy as np\n\n\ndef f(a, b):\n    s = 0.0\n    for i in range(1, 50):\n"
        "        a[i] = a[i - 1] * 0.5 + b[i]\n        s += a[i]\n    for _ in range(3):\n"
        "        b[:] = b * 2 + a\n    return s, b + 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("device_loops")
    f = dc.accelerate(module.f)
    a, b = np.ones(N), np.arange(float(N))
    want = module.f(a, b)
    for _ in range(3):
        x, y = np.ones(N), np.arange(float(N))
        with dc.options(device="made-up:0"):
            got = f(x, y)
        assert got[0] == want[0] and np.array_equal(got[1], want[1])
        assert np.array_equal(x, a) and np.array_equal(y, b)


def test_arrays_of_ranks_have_no_device_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dcarray.offload.placing.communicator", object)
    for make in (
        lambda: dc.zeros(3, device="made-up:0"),
        lambda: dc.asarray([1], device="made-up:0"),
        lambda: dc.ones(3).to_device("made-up:0"),
    ):
        with pytest.raises(
            ValueError, match=r"several ranks compute on made-up:0 with dc\.options\(device=\.\.\.\)"
        ):
            make()
