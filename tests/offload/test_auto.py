"""The device ``"auto"``: where recordings run, by which figures, and that results do not depend on it."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import needs_opencl
from made_up_device import MadeUpDevice, make_up

import dcarray as dc
from conformance.fuzz import program
from conformance.programs import difference, suits_devices
from dcarray.core import config
from dcarray.lowering.gpu import devices as table
from dcarray.offload import auto, calibration
from dcarray.offload.target_choice import Choice, Decision, Moves, Rates, Speed, Work, work_of

N = 20_000
HOST = Speed(1e3, 0.1, 1.0, 0.1)
FASTER = Speed(1e4, 0.001, 0.01, 0.001)
RATES = Rates(HOST, FASTER, copy=1e4, upload=0.5, download=0.5)
SLOWER = Rates(HOST, Speed(1e6, 1.0, 10.0, 10.0), copy=1e4, upload=0.5, download=0.5)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> MadeUpDevice:
    """A made-up device that runs plans, the only one that there is; launching is dear and all else cheap."""
    found = MadeUpDevice(target="made-up")
    make_up(monkeypatch, found)
    monkeypatch.setattr(table, "find", lambda: [found])
    monkeypatch.setattr(calibration, "rates_of", lambda *_, **__: RATES)
    return found


# The work of recordings


def test_the_work_of_a_chain() -> None:
    log = [
        ("old", "d", (1000,), None, 0),
        ("new", "d", (1000,), 1),
        ("map", "multiply", "dd", (1000,), 1, None, (0, None, None), 0),
        ("new", "d", (1000,), 2),
        ("map", "exp", "dd", (1000,), 2, None, (1, None, None)),
    ]
    work = work_of(log, live=[2])
    assert work.launches == 1 and work.nbytes == 16_000 and work.multiplications == 0
    assert work.arithmetic > 0 == work_of(log[:3], live=[1]).arithmetic  # a product is hidden by its bytes


def test_the_work_of_a_window_is_its_own() -> None:
    log = [
        ("old", "f", (1000, 1000), None, 0),
        ("map", "add", "ff", (10, 10), 0, ((5, 1, 0), (5, 1, 1)), (0, ((0, 1, 0), (0, 1, 1)), (10, 10)), 0),
    ]
    assert work_of(log, live=[]).nbytes == 400


def test_the_work_of_a_product() -> None:
    log = [
        ("old", "d", (30, 50), None, 0),
        ("old", "d", (50, 20), None, 1),
        ("new", "d", (30, 20), 2),
        ("call", "blas.matmul", (2,), ((0, None, None), (1, None, None)), ()),
    ]
    work = work_of(log, live=[2])
    assert work.multiplications == 30 * 50 * 20 and work.launches == 2


# The rule


def test_without_copies_the_sooner_side_is_taken() -> None:
    few, many = Work(1, 1000, 0.0, 0.0), Work(1, 10**8, 0.0, 0.0)
    assert not Choice().decide(few, Moves(), RATES, "d").on_device
    assert Choice().decide(many, Moves(), RATES, "d").on_device
    assert not Choice().decide(many, Moves(), SLOWER, "d").on_device


def test_copies_are_made_once_they_would_have_paid() -> None:
    work, moves = Work(1, 10**6, 0.0, 0.0), Moves(to_device=(1, 10**6))
    host, there = HOST.time(work), FASTER.time(work)
    moving = RATES.moving(1, 10**6, RATES.upload)
    assert there < host < there + moving
    choice = Choice()
    made = [choice.decide(work, moves, RATES, "d").on_device for _ in range(20)]
    first = made.index(True)
    assert (first + 1) * (host - there) >= moving > first * (host - there)


def test_elements_that_only_the_device_has_come_back_once_it_pays() -> None:
    work, moves = Work(1, 1000, 0.0, 0.0), Moves(to_host=(1, 10**5))
    choice = Choice()
    made = [choice.decide(work, moves, RATES, "d").on_device for _ in range(30)]
    assert made[0] and made.index(False) > 1
    assert not choice.decide(work, Moves(), RATES, "d").on_device


def test_asking_counts_nothing() -> None:
    work, moves = Work(1, 10**6, 0.0, 0.0), Moves(to_device=(1, 10**6))
    choice = Choice()
    for _ in range(20):
        assert not choice.decide(work, moves, RATES, "d", tried=False).on_device
    assert choice.lost == 0


# Runs


def test_large_recordings_run_on_the_device_and_stay_there(device: MadeUpDevice) -> None:
    a = np.arange(4_000_000.0)
    x = dc.asarray(a, device="auto")
    assert device.uploads == 0 and x.device == "auto"
    for _ in range(8):
        x = dc.evaluate(np.sqrt(x * x + 1))
        a = np.sqrt(a * a + 1)
    assert device.runs >= 6 and device.uploads == 1 and device.downloads == 0
    np.testing.assert_array_equal(np.asarray(x), a)


def test_small_recordings_run_on_the_processor(device: MadeUpDevice) -> None:
    x = dc.asarray(np.arange(float(N)), device="auto")
    y = dc.evaluate(x + 1)
    assert y.device == "auto" and device.runs == device.uploads == 0
    np.testing.assert_array_equal(np.asarray(y), np.arange(float(N)) + 1)


def test_rates_are_measured_before_anything_is_recorded(
    device: MadeUpDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(auto, "_instances", {})
    monkeypatch.setattr(calibration, "rates_of", lambda *_, **__: (asked.append(True), RATES)[1])
    x = dc.asarray(np.ones(N), device="auto")
    assert asked == [True]
    dc.evaluate(x + 1)
    assert asked == [True]


def test_explain_says_where_and_why(device: MadeUpDevice) -> None:
    x = dc.asarray(np.arange(float(N)), device="auto")
    shown = str(dc.explain(x + 1))
    assert "runs on the processor: made-up:0 " in shown and " ms for copies, cpu " in shown
    with dc.options(jit="off"):
        assert "the option jit is off" in str(dc.explain(lambda: dc.evaluate(x * 2)))


def test_the_option_and_mixing(device: MadeUpDevice) -> None:
    with dc.options(device="auto"):
        x = dc.ones(N)
    assert x.device == "auto" and (x + np.ones(N)).device == "auto"
    with pytest.raises(ValueError, match=r"auto.*cpu|cpu.*auto"):
        x + dc.ones(N)
    assert (x.to_device("cpu") + dc.ones(N)).device == "cpu"
    assert x.to_device("auto") is x
    assert x.__dlpack_device__() == (1, 0)


def test_exceptions_are_raised_by_the_processor(device: MadeUpDevice) -> None:
    x = dc.asarray(np.zeros(4_000_000), device="auto")
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        dc.evaluate(1.0 / x)
    assert device.runs == 0


def test_a_view_that_is_handed_out_costs_copies(device: MadeUpDevice) -> None:
    x = dc.asarray(np.zeros(1_000_000), device="auto")
    seen = np.asarray(x)
    for _ in range(5):
        x += 1
        assert seen[0] == x[0]
    assert device.runs == 0


def test_a_device_that_is_lost_is_given_up(device: MadeUpDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    x = dc.asarray(np.arange(4_000_000.0), device="auto")
    monkeypatch.setattr(device, "error", RuntimeError("it has gone"))
    with pytest.warns(RuntimeWarning, match="it has gone"):
        y = [dc.evaluate(x * 2 + 1) for _ in range(6)]
    np.testing.assert_array_equal(np.asarray(y[-1]), np.arange(4_000_000.0) * 2 + 1)


def test_without_a_device_auto_is_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "find", list)
    x = dc.asarray(np.ones(N), device="auto")
    assert x.device == "cpu" and (x + dc.ones(N)).device == "cpu"
    assert x.to_device("auto") is x
    assert str(dc.info()).count("device auto") == 1 and "there is no other" in str(dc.info())


def test_random_programs_whose_recordings_run_anywhere(
    device: MadeUpDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(Choice, "decide", lambda *_, **__: Decision(bool(rng.integers(2)), "by chance"))
    runs = 0
    for seed in range(250):
        made = program(seed)
        if not suits_devices(made):
            continue
        mode = {"device": "auto", "eager_below": 0 if seed % 4 else 6, "debug": True}
        with np.errstate(all="ignore"):
            text = difference(made, **mode)
        assert text is None, f"{text}\n{made.text(**mode)}"
        runs += 1
    assert runs > 150 and device.runs > runs and device.downloads > runs / 2


# Calibration


def test_rates_are_kept_and_anything_else_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device: Any = MadeUpDevice()
    measured: list[object] = []
    monkeypatch.setattr(calibration, "measured_rates", lambda one: (measured.append(one), RATES)[1])
    with dc.options(cache_dir=tmp_path):
        now = config.current()
        assert calibration.known_rates(device, now) is None
        assert calibration.rates_of(device, now) == calibration.rates_of(device, now) == RATES
        assert len(measured) == 1
        (path,) = tmp_path.glob("rates-*.json")
        number, (kept,) = json.loads(path.read_text())
        wrong = [{**kept, "copy": -1.0}, {**kept, "more": 1.0}]
        for broken in ("", "[]", "{}", "[0, []]", *(json.dumps([number, [one]]) for one in wrong)):
            path.write_text(broken)
            assert calibration.known_rates(device, now) is None
        device.description = "another one"
        calibration.rates_of(device, now)
        assert len(measured) == 2
        with dc.options(cache_dir=None):
            calibration.rates_of(device, config.current())
        assert len(measured) == 3


def test_rates_that_were_measured_beside_other_work_are_corrected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The processor's products looked 14 times as slow as they are; the next measurement says so."""
    device: Any = MadeUpDevice()
    busy = Rates(Speed(1e3, 0.1, 1.0, 1.4), FASTER, copy=1e4, upload=0.5, download=0.5)
    coming = [busy, RATES, busy, busy, busy]
    monkeypatch.setattr(calibration, "measured_rates", lambda _: coming.pop(0))

    def later(seconds: float, **how: Any) -> Rates:
        (path,) = tmp_path.glob("rates-*.json")
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))
        return calibration.rates_of(device, config.current(), **how)

    with dc.options(cache_dir=tmp_path):
        assert calibration.rates_of(device, config.current()) == busy == later(calibration.SOON / 2)
        assert later(calibration.SOON) == RATES and len(coming) == 3
        assert later(2 * calibration.SOON) == RATES and len(coming) == 3  # it is asked seldom now
        assert later(calibration.SOON, again=True) == RATES and len(coming) == 2
        for _ in range(2):  # a lucky measurement does not count for ever
            assert calibration.known_rates(device, config.current()) == RATES
            found = later(calibration.SOON, again=True)
        assert found == busy and not coming


def test_runs_that_take_much_less_than_expected_have_the_rates_measured_again(
    device: MadeUpDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    slow = Rates(Speed(1e9, 1e3, 1e3, 1e3), Speed(1e12, 1e6, 1e6, 1e6), copy=1e4, upload=0.5, download=0.5)
    monkeypatch.setattr(auto, "_instances", {})
    monkeypatch.setattr(auto, "_ASKED", 0.0)

    def rates(*_: Any, again: bool) -> Rates:
        asked.append(again)
        return RATES if True in asked else slow

    monkeypatch.setattr(calibration, "rates_of", rates)
    x = dc.asarray(np.ones(N), device="auto")
    dc.evaluate(x + 1)
    dc.asarray(np.ones(N), device="auto")
    dc.asarray(np.ones(N), device="auto")
    assert not asked[0] and asked.count(True) == 1 and not asked[-1] and device.runs == 0


@needs_opencl
def test_a_real_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = table.get("opencl:0")
    monkeypatch.setattr(table, "find", lambda: [there])
    monkeypatch.setattr(auto, "_instances", {})
    monkeypatch.setattr(calibration, "UNCACHED_ELEMENTS", 1 << 18)
    with dc.options(cache_dir=tmp_path, jit="eager"):
        found = auto.auto_device()
        assert found is not None
        rates = found.rates()
        assert 0 < rates.device.launch < 1e9 and 0 < rates.host.byte < 100 and rates.upload > 0
        a = np.linspace(0.0, 1.0, N)
        for side in (True, False):
            monkeypatch.setattr(Choice, "decide", lambda *_, side=side, **__: Decision(side, "so it is"))
            x = dc.asarray(a, device="auto")
            np.testing.assert_array_equal(np.asarray(np.sqrt(x * x + 1) - x), np.sqrt(a * a + 1) - a)
        assert "rates" in str(dc.info())
