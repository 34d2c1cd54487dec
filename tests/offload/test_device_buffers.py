"""When elements are copied between the host and a device, and who has the truth."""

from typing import Any

import numpy as np
import pytest
from made_up_device import MadeUpDevice, make_up

import dcarray as dc

N = 20_000


@pytest.fixture(params=["made-up", ""], ids=["on the device", "on the host"])
def device(request: Any, monkeypatch: pytest.MonkeyPatch) -> MadeUpDevice:
    """A made-up device that runs plans, or that leaves all to the host."""
    found = MadeUpDevice(target=request.param)
    make_up(monkeypatch, found)
    return found


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> MadeUpDevice:
    """A made-up device that runs plans."""
    found = MadeUpDevice(target="made-up")
    make_up(monkeypatch, found)
    return found


def _put(a: Any) -> Any:
    return dc.asarray(a, device="made-up:0")


def test_several_regions_that_only_read_upload_once(running: MadeUpDevice) -> None:
    x = _put(np.arange(float(N)))
    for k in range(5):
        y = dc.evaluate(x * k + 1)
        assert y.device == "made-up:0"
    assert (running.uploads, running.downloads, running.runs) == (1, 0, 5)


def test_nothing_is_downloaded_until_the_host_asks(running: MadeUpDevice) -> None:
    x = _put(np.arange(float(N)))
    y = x + 1
    for _ in range(3):
        y = dc.evaluate(y * 2)
    assert running.downloads == 0
    assert y[3] == 32.0 and y[4] == 40.0
    assert (running.downloads, running.downloaded) == (2, 16)
    assert np.array_equal(np.asarray(x), np.arange(float(N)))


def test_a_result_stays_there_after_the_host_has_read_it(running: MadeUpDevice) -> None:
    y = dc.evaluate(_put(np.arange(float(N))) + 1)
    assert float(y[0]) == 1.0
    dc.evaluate(y * 2)
    assert (running.uploads, running.downloads) == (1, 1)


def test_a_write_by_the_host_drops_the_copy(device: MadeUpDevice) -> None:
    x = _put(np.arange(float(N)))
    y = dc.evaluate(x + 1)
    y.flat[7] = -5.0
    y[[1, 2]] = 9.0
    z = y * 2
    want = np.arange(float(N)) + 1
    want[[1, 2, 7]] = 9.0, 9.0, -5.0
    assert np.array_equal(np.asarray(z), want * 2)


def test_a_write_to_a_pending_result_by_the_host(device: MadeUpDevice) -> None:
    y = _put(np.zeros(N)) + 1
    y[3] = -1
    assert float(np.sum(y)) == N - 2
    assert float((y * 2)[3]) == -2.0


def test_exported_views_keep_the_truth(device: MadeUpDevice) -> None:
    x = _put(np.zeros(N))
    view = np.asarray(x)
    x += 1
    assert view[0] == 1.0 and view[-1] == 1.0
    view[5] = 7.0
    y = x * 2
    view[5] = 8.0  # after the call
    assert float(y[5]) == 14.0 and float(x[5]) == 8.0
    x[6] = 3.0
    assert view[6] == 3.0
    del view
    x += 1
    assert float(x[5]) == 9.0


def test_memory_that_was_exported_is_the_devices_again(running: MadeUpDevice) -> None:
    x = _put(np.zeros(N))
    np.asarray(x)
    dc.evaluate(x + 1)
    uploads = running.uploads
    dc.evaluate(x + 2)
    assert running.uploads == uploads


def test_updates_in_place_and_views(device: MadeUpDevice) -> None:
    a = np.arange(float(N)).reshape(100, 200)
    x, want = _put(a), a.copy()
    x[1:-1, 1:-1] += x[:-2, 2:]
    want[1:-1, 1:-1] += want[:-2, 2:].copy()
    x.T[5] = x[:, 3]
    want.T[5] = want[:, 3]
    x.reshape(-1)[::7] *= -1
    want.reshape(-1)[::7] *= -1
    y = x.view("i8") & 7
    assert y.device == "made-up:0" and np.array_equal(np.asarray(y), want.view("i8") & 7)
    assert np.array_equal(np.asarray(x), want)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_is_kept(device: MadeUpDevice, order: Any) -> None:
    a = np.array(np.arange(float(N)).reshape(100, 200), order=order)
    x = _put(a)
    assert x.strides == a.strides and (x + 1).strides == a.strides
    assert np.array_equal(np.asarray(x + 1), a + 1)


def test_results_of_numpy_may_have_any_strides(device: MadeUpDevice) -> None:
    a = np.arange(float(N)).reshape(100, 200)
    y = np.sort(_put(a), axis=0)[::-1].T
    z = np.partition(y, 3, axis=1)
    assert np.array_equal(np.asarray(y * 2 + 1), np.sort(a, axis=0)[::-1].T * 2 + 1)
    assert z.device == y.device == "made-up:0"


def test_without_memory_there_the_host_computes(running: MadeUpDevice) -> None:
    dc.report(reset=True)
    x = _put(np.arange(float(N)))
    running.left = 0
    y = x * 2
    assert np.array_equal(np.asarray(y), np.arange(float(N)) * 2)
    assert str(dc.report()).count("made-up:0 has no memory left") == 1
    big = _put(np.ones(N))
    assert big.device == "made-up:0" and float((big + 1)[0]) == 2.0
    running.left = None
    assert float((y + x)[3]) == 9.0


def test_a_lost_device_leaves_what_the_host_has(running: MadeUpDevice) -> None:
    x, y = _put(np.arange(float(N))), _put(np.ones(N))
    assert float(np.asarray(x)[3]) == 3.0
    z = dc.evaluate(y + 1)
    running.error = RuntimeError("it fell off the bus")
    with pytest.warns(RuntimeWarning, match="on the host"):
        w = dc.evaluate(x * 3)  # of elements that the host has
    assert np.array_equal(np.asarray(w), np.arange(float(N)) * 3)
    with pytest.raises(RuntimeError, match="made-up:0 are lost: it fell off the bus"):
        np.asarray(z)
    with pytest.raises(RuntimeError, match="made-up:0 are lost"):
        np.asarray(z + 1)
    with pytest.raises(RuntimeError, match="made-up:0 are lost"):
        float(z[0])
    assert float((w + 1)[1]) == 4.0  # arrays that are not lost are of use as before


def test_a_device_lost_while_it_writes(running: MadeUpDevice) -> None:
    x = _put(np.ones(N))
    y = dc.evaluate(x + 1)
    np.array(y)  # the host has the elements of one
    running.lost_after = running.runs
    y += 1
    x += 1  # of which it has none
    with pytest.warns(RuntimeWarning, match="the device is lost"):
        dc.evaluate(y)
    assert np.array_equal(np.asarray(y), np.full(N, 3.0))
    with pytest.raises(RuntimeError, match="made-up:0 are lost"):
        np.asarray(x)


def test_threads_hand_arrays_over(device: MadeUpDevice) -> None:
    import threading

    x = _put(np.arange(float(N)))
    y = x + 1  # pending in this thread
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(y * 2))
    thread.start()
    thread.join()
    assert np.array_equal(np.asarray(found[0]), (np.arange(float(N)) + 1) * 2)


def test_errors_are_raised_on_the_host(device: MadeUpDevice) -> None:
    x = _put(np.zeros(N))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        dc.evaluate(1 / x)
    with pytest.raises(ValueError, match="broadcast"):
        x + np.ones(3)
    assert float((x + 1)[0]) == 1.0


def test_explanations_are_of_the_devices_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    make_up(monkeypatch, MadeUpDevice(target="c"))
    x = dc.asarray(np.ones(N), device="made-up:0")
    shown = dc.explain(np.sqrt(x * x + 1))
    assert len(shown.kernels) == 1 and "sqrt(x[i] * x[i] + 1.0)" in str(shown)
    shown = dc.explain(lambda x: (x + 1) * 2, x)
    assert len(shown.kernels) == 1


def test_one_element_is_copied_alone_until_all_are_had_sooner(running: MadeUpDevice) -> None:
    a = np.arange(300_000.0).reshape(500, 600)
    x = dc.evaluate(_put(a) + 1)
    assert x[3, 4] == a[3, 4] + 1 and x[-1, -1] == a[-1, -1] + 1
    assert x[10:, ::2][5, 6] == a[15, 12] + 1 and x.T[6, 5] == a[5, 6] + 1
    assert x.reshape(-1)[1234] == 1235.0 and float(x[0, 0]) == 1.0
    assert running.downloads == 6 and running.downloaded == 6 * 8
    read = [float(x[0, k]) for k in range(200)]
    assert read == list(range(1, 201)) and running.downloads < 40 and running.downloaded < 2 * a.nbytes
    x[0, 0] = 5.0
    assert x[0, 0] == 5.0 and x[0, 1] == 2.0


def test_of_a_part_no_more_is_copied_than_lies_in_between(running: MadeUpDevice) -> None:
    a = np.arange(1_000_000.0).reshape(1000, 1000) + 1
    x = dc.evaluate(_put(a - 1) + 1)
    want = 0
    for got, expected, between in [
        (str(x[:3, :4]), str(a[:3, :4]), 2 * 1000 + 4),
        (x[0, 5:9].tolist(), a[0, 5:9].tolist(), 4),
        (x[999, ::-300].tolist(), a[999, ::-300].tolist(), 901),
        (x.T[2:4, 7:5:-1].tolist(), a.T[2:4, 7:5:-1].tolist(), 1002),
        (x[:10].tobytes(), a[:10].tobytes(), 10_000),
        (x.reshape(100, 10_000)[3:5, 1:3].tolist(), a.reshape(100, -1)[3:5, 1:3].tolist(), 10_002),
        (x[:2].to_device("cpu").tolist(), a[:2].tolist(), 2000),
    ]:
        want += between * 8
        assert got == expected
    assert running.downloaded == want
    assert x[:, 5].tolist() == a[:, 5].tolist()  # few of what lies in between
    assert running.downloaded == want + a.nbytes
    x[0, 7] = -1.0
    assert x[0, 5:9].tolist() == [6.0, 7.0, -1.0, 9.0]


@pytest.mark.parametrize("seed", range(30))
def test_random_parts(running: MadeUpDevice, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1000, (20, 30, 40)).astype(rng.choice(["f4", "i8", "c16", "?"]))
    x, y = dc.evaluate(np.positive(_put(a))) if a.dtype != bool else dc.evaluate(~_put(~a)), a
    for _ in range(3):
        axes = rng.permutation(y.ndim)
        x, y = x.transpose(axes), y.transpose(axes)
        key = tuple(
            slice(int(low), int(low) + int(rng.integers(1, n + 1)), int(rng.integers(1, 4)))
            if rng.random() < 0.5 else slice(None, None, int(rng.choice([-2, -1, 1])))
            for n in y.shape for low in [rng.integers(0, n)]
        )  # fmt: skip
        x, y = x[key], y[key]
        assert x.tolist() == y.tolist()
