"""threadpoolctl sees our threads and limits them, whichever of the two is imported first."""

import dataclasses

import pytest
from fresh import python

import dcarray as dc
from dcarray.core import config

threadpoolctl = pytest.importorskip("threadpoolctl", minversion="3.2")


@pytest.fixture(autouse=True)
def eight_threads(monkeypatch):
    monkeypatch.setenv("DCARRAY_THREADS", "8")
    config.refresh()
    yield
    assert config._limit is None
    monkeypatch.undo()
    config.refresh()


def shown() -> int:
    (found,) = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "dcarray"]
    assert found["internal_api"] == "dcarray" and found["version"] == dc.__version__
    return found["num_threads"]


def test_limits_nest():
    assert shown() == config.current().threads == 8
    with threadpoolctl.threadpool_limits(4):
        assert shown() == config.current().threads == 4
        with threadpoolctl.threadpool_limits(limits=1):
            assert shown() == config.current().threads == 1
        assert shown() == config.current().threads == 4
        with threadpoolctl.threadpool_limits({"dcarray": 2}):
            assert shown() == config.current().threads == 2
        assert shown() == config.current().threads == 4
    assert shown() == config.current().threads == 8


def test_only_others_are_limited():
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert shown() == config.current().threads == 8
    with threadpoolctl.threadpool_limits(16):
        assert shown() == config.current().threads == 8


def test_blocks_of_options_do_not_exceed_a_limit():
    with dc.options(threads=5, jit="off"):
        with threadpoolctl.threadpool_limits(2):
            assert config.current().threads == 2 and config.current().jit == "off"
            assert config.current() is config.current()
            with dc.options(threads=1):
                assert config.current().threads == 1
            with dc.options(threads=3):
                assert config.current().threads == 2
        assert config.current().threads == 5
    assert config.current().threads == 8


def test_a_limit_ends_though_the_number_has_changed():
    with threadpoolctl.threadpool_limits(2):
        config._process = dataclasses.replace(config.current(), threads=12)  # there are more processors
        assert shown() == 2
    assert shown() == 12


ORDERS = [
    "import dcarray, threadpoolctl",
    "import threadpoolctl, dcarray",
    "import dcarray, importlib.util; importlib.util.find_spec('threadpoolctl'); import threadpoolctl",
    "import dcarray; from threadpoolctl import threadpool_info; import threadpoolctl",
]


@pytest.mark.parametrize("order", ORDERS)
def test_whichever_is_imported_first(order):
    program = f"""
import sys, numpy  # whose library stands for our threads
{order}
print(sum(p["user_api"] == "dcarray" for p in threadpoolctl.threadpool_info()))
print([f for f in sys.meta_path if type(f).__module__.startswith("dcarray")])
with threadpoolctl.threadpool_limits(1):
    from dcarray.core import config
    print(config.current().threads)
"""
    done = python("-c", program)
    assert done.stdout.split() == ["1", "[]", "1"], done.stderr


def test_without_threadpoolctl():
    program = """
import sys
sys.path_importer_cache.clear()
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name == "threadpoolctl":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Nothing())
import dcarray
for _ in range(2):
    try:
        import threadpoolctl
    except ModuleNotFoundError as error:
        print(error.name)
"""
    done = python("-c", program)
    assert done.stdout.split() == ["threadpoolctl"] * 2, done.stderr
