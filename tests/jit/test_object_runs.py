"""Short runs on parts of objects, and runs that overwrite arrays: the same as in Python, whatever changes."""

import copy
import gc
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.jit.loops.sites import short_runs, site_server, version
from dcarray.jit.loops.sites.sampler import SAMPLER

pytestmark = [
    pytest.mark.eager(threads=2),
    pytest.mark.skipif(not BUILT, reason="the C module is not built"),
    pytest.mark.one_process("arrays of several ranks are no plain ones"),
]

KIND = """
    class f:
        scale = 0.5
        def __init__(self, n=30):
            self.x, self.v, self.dt = np.arange(1.0, n + 1), np.linspace(0.1, 1.0, n), 0.01
            self.more = {"k": 2.0}
        def force(self, a):
            return -a * self.scale
        @property
        def half(self):
            return self.dt / 2
        def step(self):
            self.v = self.v + self.half * self.force(self.x) * self.more["k"]
            self.x += self.dt * self.v
            self.x *= 0.999
"""


def both(text: str) -> tuple[Any, Any, Callable[[], bool]]:
    """Two equal things of a text, of which the second is accelerated, and whether that has object runs."""
    plain, other = written(text, np=np), written(text, np=np)
    file = other.step.__code__.co_filename
    dc.accelerate(other)

    def runs() -> bool:
        sites = [s for s in SAMPLER.sites() if s.source.file == file]
        return any(type(s.enter).__name__ == "ObjectRun" for s in sites)

    return plain, other, runs


def outcome(step: Callable[[], Any], owner: Any) -> Any:
    """What a call raises or warns, and the attributes of an object afterwards."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            raised = step() and None
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
    state = [
        (name, type(v), repr(np.array(v).tolist()))  # as text, in which NaN equals itself
        for name, v in vars(owner).items()
        if name != "more" and not callable(v)
    ]
    return raised, [str(w.message) for w in caught], state


def steps_agree(a: Any, b: Any, times: int = 3) -> None:
    for _ in range(times):
        assert outcome(a.step, a) == outcome(b.step, b)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "another dtype": lambda s: setattr(s, "x", s.x.astype("f4")),
    "another size": lambda s: s.__dict__.update(x=s.x[:7].copy(), v=s.v[:7].copy()),
    "a column": lambda s: setattr(s, "x", np.ones((30, 3))[:, 1]),
    "an int": lambda s: setattr(s, "dt", 2),
    "a scalar of NumPy's": lambda s: setattr(s, "dt", np.float64(0.02)),
    "one array twice": lambda s: setattr(s, "v", s.x),
    "arrays that overlap": lambda s: s.__dict__.update(v=(w := np.ones(40))[:30], x=w[10:]),
    "no array": lambda s: setattr(s, "x", 1.5),
    "no attribute": lambda s: s.__dict__.pop("v", None),
    "an attribute of the object before that of the class": lambda s: setattr(s, "scale", 0.25),
    "a function of the object": lambda s: setattr(s, "force", lambda a: a * 3.0),
    "another function of the class": lambda s: setattr(type(s), "force", lambda self, a: a - 1.0),
    "another property": lambda s: setattr(type(s), "half", property(lambda self: self.dt)),
    "a property in place of an attribute": lambda s: setattr(type(s), "dt", property(lambda self: 0.5)),
    "a class that computes attributes": lambda s: setattr(
        type(s), "__getattribute__", lambda self, name: object.__getattribute__(self, name)
    ),
    "a class that is told of what is set": lambda s: setattr(
        type(s), "__setattr__", lambda self, name, v: object.__setattr__(self, name, v * 2)
    ),
    "another item": lambda s: s.more.update(k=3.0),
    "no item": lambda s: s.more.clear(),
    "another dictionary": lambda s: setattr(s, "more", types.MappingProxyType({"k": 1.0})),
    "an error of floating point": lambda s: s.x.__setitem__(3, np.inf),
    "what may not be written": lambda s: setattr(s.x.flags, "writeable", False),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changes_is_seen(change: Callable[[Any], Any]) -> None:
    plain, other, runs = both(KIND)
    a, b = plain(), other()
    steps_agree(a, b, 5)
    assert runs()
    for _ in range(2):
        change(a)
        change(b)
        steps_agree(a, b)


def test_a_function_of_an_object_gives_way_to_that_of_its_class() -> None:
    a, b = (kind() for kind in both(KIND)[:2])
    a.force = b.force = lambda x: x * 3.0
    steps_agree(a, b, 5)
    del a.force, b.force
    steps_agree(a, b, 5)


def test_objects_that_share_their_attributes() -> None:
    text = """
    class f:
        def __init__(self):
            self.x, self.t = np.ones(20), 0.0
        def step(self):
            self.y = self.x * 2.0
            self.t = self.t + 1.0
            self.other.t = self.other.t + 2.0
            self.x = self.y - self.t
    """
    plain, other, _ = both(text)
    for share in (False, True):
        pairs = [(kind(), kind()) for kind in (plain, other)]
        for first, second in pairs:
            first.other = second
            if share:
                second.__dict__ = first.__dict__
        for _ in range(6):
            for first, _second in pairs:
                first.step()
            (a, a2), (b, b2) = pairs
            np.testing.assert_array_equal(a.x, b.x)
            assert (a.t, a2.t) == (b.t, b2.t)


def test_what_a_failing_run_has_overwritten_is_restored() -> None:
    text = """
    class f:
        def __init__(self):
            self.x, self.y = np.arange(1.0, 21), np.ones((20, 2))
        def step(self):
            self.x -= 1.0
            self.y[:, 1] += self.x
            self.y[:, 0] = 1.0 / self.x
    """
    plain, other, runs = both(text)
    a, b = plain(), other()
    for k in range(6):
        a.x, b.x = np.arange(2.0, 22) + k, np.arange(2.0, 22) + k
        steps_agree(a, b, 1)
    assert runs()
    a.x, b.x = np.arange(1.0, 21), np.arange(1.0, 21)  # the first becomes zero
    for _ in range(4):
        got = outcome(b.step, b)
        assert outcome(a.step, a) == got
    with np.errstate(divide="raise"):
        for one in (a, b):
            one.x[:] = np.arange(1.0, 21)
        want, got = outcome(a.step, a), outcome(b.step, b)
        assert want == got and "FloatingPointError" in got[0]


def test_objects_of_slots_and_copies() -> None:
    text = KIND.replace(
        "scale = 0.5", '__slots__ = ("x", "v", "dt", "more", "__dict__")\n        scale = 0.5'
    )
    plain, other, runs = both(text)
    a, b = plain(), other()
    for k in range(8):
        a.step()
        b.step()
        np.testing.assert_array_equal(a.x, b.x)
        np.testing.assert_array_equal(a.v, b.v)
        if k == 5:
            assert runs()
            a, b = copy.copy(a), copy.copy(b)


def test_another_thread_is_served_while_a_short_run_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, other, _ = both(KIND)
    one, two = plain(), other()
    make, ends = short_runs.ShortRuns._make, [()]

    def made(self: Any, *args: Any) -> Any:
        if ends and self.values:
            self.values = ends.pop()  # as the other thread leaves it
        return make(self, *args)

    monkeypatch.setattr(short_runs.ShortRuns, "_make", made)
    for _ in range(3):
        one.step(), two.step()
    np.testing.assert_array_equal(one.x, two.x)
    assert not ends


COUNTED = """
    alive = 0
    class Thing:
        def __init__(self):
            global alive
            alive += 1
            self.kept = 1
        def __del__(self):
            global alive
            alive -= 1
    def f(n):
        for i in range(n):
            a, b = Thing(), Thing()
            a.other, b.other = b, a
        del a, b
        gc.collect()
        return alive
"""


def test_no_finalizer_runs_inside_of_a_run() -> None:
    f = written(COUNTED, gc=gc)
    dc.accelerate(f.__globals__["Thing"])
    assert [f(2000) for _ in range(2)] == [0, 0]


def test_no_finalizer_runs_before_a_site_holds_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_runs.ShortRuns, "begin_trial", lambda *args: None)
    monkeypatch.setattr(version.Version, "_shorten", lambda *args: None)
    before = gc.get_threshold()
    f = written(COUNTED, gc=gc)
    dc.accelerate(f.__globals__["Thing"])
    try:
        gc.set_threshold(3, 10, 10)
        assert [f(100) for _ in range(2)] == [0, 0]
    finally:
        gc.set_threshold(*before)


def test_whether_collections_are_enabled_is_left_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    f, serve = written(COUNTED, gc=gc), site_server.SiteServer._serve
    dc.accelerate(f.__globals__["Thing"])

    def as_another_thread(*args: Any) -> Any:
        _ = gc.isenabled() and gc.disable()
        return serve(*args)

    monkeypatch.setattr(site_server.SiteServer, "_serve", as_another_thread)
    try:
        assert f(100) == 0 and not gc.isenabled()
    finally:
        gc.enable()
