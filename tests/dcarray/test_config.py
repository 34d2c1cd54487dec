"""Options: the environment, scopes, threads, refusals."""

import copy
import pickle
import threading
import types

import numpy as np
import pytest

import dcarray as dc
import dcarray.array_api
from dcarray.core import config
from dcarray.lowering.gpu import devices


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


@pytest.mark.parametrize("variable, value, allowed", [
    ("JIT", "on", "background, eager or off"),
    ("THREADS", "0", "integer >= 1"), ("DEVICE", "cuda:99", "devices there are: cpu"),
    ("EAGER_BELOW", "-1", "integer >= 0"), ("STRICT", "maybe", "true"), ("EAGER_BELOW", "1e3", "integer"),
])  # fmt: skip
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


@pytest.mark.parametrize("device", ["cuda:99", "opencl:99", "automatic", None])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(ValueError, match=r"device=.*devices there are: cpu"), dc.options(device=device):
        pass
    with dc.options(device="cpu") as now:
        assert now.device == "cpu"


def test_a_kind_without_devices_is_refused_with_the_reason(environment, monkeypatch):
    monkeypatch.setitem(devices._found, "cuda", devices.NoDevice("no driver: install one"))
    with pytest.raises(ValueError, match=r"device='cuda'.*no driver: install one"), dc.options(device="cuda"):
        pass
    environment.setenv("DCARRAY_DEVICE", "cuda:0")
    config.refresh()
    with pytest.raises(ValueError, match=r"DCARRAY_DEVICE='cuda:0'.*no driver: install one"):
        config.current()


def test_a_device_is_asked_for_by_name_or_kind(environment, monkeypatch):
    first, second = (types.SimpleNamespace(name=f"cuda:{k}", description=f"card {k}") for k in range(2))
    monkeypatch.setitem(devices._found, "cuda", [first, second])
    for name, full in (
        ("cuda", "cuda:0"),
        ("cuda:0", "cuda:0"),
        ("cuda:1", "cuda:1"),
        (dc.devices()[-1], "cuda:1"),
    ):
        with dc.options(device=name) as now:
            assert type(now.device) is str and now.device == full
    environment.setenv("DCARRAY_DEVICE", "cuda")
    config.refresh()
    assert config.current().device == "cuda:0"


def test_devices_are_strings_that_know_more(monkeypatch):
    one = types.SimpleNamespace(name="cuda:7", description="a card")
    monkeypatch.setitem(devices._found, "cuda", [one])
    names = dc.devices()
    assert names[0] == "cpu" and names[0].kind == "cpu" and names[0].description
    last = names[-1]
    assert isinstance(last, str) and last == "cuda:7" and hash(last) == hash("cuda:7")
    assert (last.name, last.kind, last.description) == ("cuda:7", "cuda", "a card") and type(last.name) is str
    for copied in (copy.deepcopy(last), pickle.loads(pickle.dumps(last))):
        assert copied == last and copied.description == "a card"


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
