"""Options: the environment, scopes, threads, refusals."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dcarray as dc
import dcarray.array_api
from dcarray.core import config


@pytest.fixture
def environment(monkeypatch):
    for name in config._READERS:
        monkeypatch.delenv("DCARRAY_" + name.upper(), raising=False)
    config.refresh()
    yield monkeypatch
    monkeypatch.undo()
    config.refresh()


def test_defaults(environment):
    now = config.current()
    assert (now.device, now.jit, now.eager_below, now.strict) == ("cpu", "background", 16384, False)
    assert now.threads >= 1 and now.cache_dir.endswith("dcarray") and not now.fastmath and not now.debug


def test_environment(environment):
    environment.setenv("DCARRAY_JIT", "eager")
    environment.setenv("DCARRAY_EAGER_BELOW", "0")
    environment.setenv("DCARRAY_STRICT", "yes")
    environment.setenv("DCARRAY_CACHE_DIR", "")
    config.refresh()
    now = config.current()
    assert now.jit == "eager" and now.eager_below == 0 and now.strict and now.cache_dir is None
    with dc.options(jit="off") as inner:
        assert inner.jit == "off" and inner.strict
    assert config.current().jit == "eager"


@pytest.mark.parametrize(
    "variable, value, allowed",
    [
        ("JIT", "on", "background, eager or off"),
        ("THREADS", "0", "integer >= 1"), ("DEVICE", "cuda:0", "devices there are: cpu"),
        ("EAGER_BELOW", "-1", "integer >= 0"), ("STRICT", "maybe", "true"), ("EAGER_BELOW", "1e3", "integer"),
    ],
)  # fmt: skip
def test_bad_environment_names_the_allowed(environment, variable, value, allowed):
    environment.setenv("DCARRAY_" + variable, value)
    config.refresh()
    with pytest.raises(ValueError, match=f"DCARRAY_{variable}.*{allowed}"):
        config.current()


@pytest.mark.parametrize(
    "values",
    [{"jitt": 1}, {"jit": None}, {"threads": 0}, {"threads": True}, {"strict": 2}, {"eager_below": 1.5}],
)
def test_bad_options(values):
    before = config.current()
    with pytest.raises(ValueError), dc.options(**values):
        pass
    assert config.current() == before


@pytest.mark.parametrize("device", ["cuda:0", "opencl:0", "auto", None])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(ValueError, match=r"device=.*devices there are: cpu"), dc.options(device=device):
        pass
    with dc.options(device="cpu") as now:
        assert now.device == "cpu"


ONES = np.ones(3)
DEVICE_ARGUMENTS = {
    "arange": (3,), "asarray": ([1.0],), "empty": (3,), "zeros": (3,), "ones": (3,), "full": (3, 1.0),
    "eye": (3,), "linspace": (0, 1, 3), "zeros_like": (ONES,), "ones_like": (ONES,), "empty_like": (ONES,),
    "full_like": (ONES, 2.0), "astype": (ONES, np.float32), "from_dlpack": (ONES,),
}  # fmt: skip


@pytest.mark.parametrize("namespace", [dc, dc.array_api])
@pytest.mark.parametrize("name", DEVICE_ARGUMENTS)
def test_functions_refuse_a_device_that_is_not_there(namespace, name):
    arguments = [namespace.asarray(a) if isinstance(a, np.ndarray) else a for a in DEVICE_ARGUMENTS[name]]
    assert getattr(namespace, name)(*arguments, device="cpu") is not None
    with pytest.raises(ValueError, match="cpu"):
        getattr(namespace, name)(*arguments, device="cuda:0")


def test_unknown_option_names_all():
    with pytest.raises(ValueError, match=r"eager_below.*cache_dir"), dc.options(nope=1):
        pass


def test_scopes_nest_and_survive_errors():
    before = config.current()
    with dc.options(eager_below=5):
        with pytest.raises(ZeroDivisionError), dc.options(eager_below=6, debug=True):
            assert config.current().eager_below == 6
            raise ZeroDivisionError
        assert config.current().eager_below == 5 and config.current().debug == before.debug
    assert config.current() == before


def test_threads_do_not_disturb_each_other():
    seen = []
    with dc.options(eager_below=7):
        thread = threading.Thread(target=lambda: seen.append(config.current().eager_below))
        thread.start()
        thread.join()
        assert config.current().eager_below == 7
    assert seen != [7]
