"""Options: the environment, scopes, threads, refusals."""

from __future__ import annotations

import threading

import pytest

import dcarray as dc
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
    environment.setenv("DCARRAY_DEVICE", "cuda:1")
    config.refresh()
    now = config.current()
    assert now.jit == "eager" and now.eager_below == 0 and now.strict and now.cache_dir is None
    assert now.device == "cuda:1"
    with dc.options(jit="off") as inner:
        assert inner.jit == "off" and inner.strict
    assert config.current().jit == "eager"


@pytest.mark.parametrize(
    "variable, value, allowed",
    [
        ("JIT", "on", "background, eager or off"),
        ("THREADS", "0", "integer >= 1"), ("DEVICE", "tpu", "cuda:N"),
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
