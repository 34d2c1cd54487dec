"""The sampler: which sites are found to be hot by looks at what runs."""

import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
from fresh import python
from written import written

from dcarray.core import native
from dcarray.jit.loops.sites import codes, functions, sampler
from dcarray.jit.loops.sites.functions import put_sites
from dcarray.jit.loops.sites.sampler import Sampler
from dcarray.jit.loops.sites.site import Site
from dcarray.tiering import admission
from dcarray.tiering.admission import HOT

PROGRAM = """
def f(n):
    for i in range(n):
        for j in range(2):
            look()
            k = i * j + 1
    look()
    return n
"""
WAITING = """
def f(done):
    k = 0
    while not done():
        for j in range(3000):
            k = k + j
    return k
"""


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Sampler:
    """A sampler that looks when it is told to."""
    made = Sampler()
    monkeypatch.setattr(sampler, "start_thread", lambda function, *args: None)
    monkeypatch.setattr(codes, "SAMPLER", made)
    return made


def test_what_is_seen_counts_for_all_sites_around_it(own: Sampler) -> None:
    f = written("def g(n):\n    for i in range(n):\n        f(3)\n" + PROGRAM)
    f.__globals__["look"] = lambda: own._look(sampler.chain_of(sys._getframe(1), own._sites, 60), HOT / 4)
    g = f.__globals__["g"]
    around, inside = put_sites(g), put_sites(f)
    g(1)
    outer = next(site for site in inside if site.source.is_loop and site.outer is None)
    inner = next(site for site in inside if site.outer is outer and site.source.is_loop)
    seen = [site.seconds for site in (around[0], outer, inner)]
    assert seen == [pytest.approx(HOT / 4 * n) for n in (7, 6, 6)]
    assert around[0].enabled and outer.enabled and inner.enabled
    assert around[0].resuming is around[0].resumable


def test_cold_sites_stay_cold(own: Sampler) -> None:
    f = written(
        PROGRAM, look=lambda: own._look(sampler.chain_of(sys._getframe(1), own._sites, 60), HOT / 1000)
    )
    sites = put_sites(f)
    f(3)
    assert not any(site.enabled for site in sites) and any(site.seconds for site in sites)


def test_refused_sites_are_not_heated_but_those_inside_are(own: Sampler) -> None:
    f = written(PROGRAM, look=lambda: own._look(sampler.chain_of(sys._getframe(1), own._sites, 60), HOT))
    outer, *others = put_sites(f)
    outer.refuse("for this test")
    f(1)
    assert not outer.enabled and outer.seconds == 0
    assert any(site.enabled for site in others if site.source.is_loop)


def test_lines_are_those_of_the_innermost_code_of_the_program(own: Sampler) -> None:
    f = written(PROGRAM, look=lambda: deep(5))

    def deep(n: int) -> None:
        deep(n - 1) if n else own._note_line(*sampler.chain_of(sys._getframe(), own._sites, 60)[0][:2], 1.0)

    put_sites(f)
    f(1)
    assert {line: seconds for (_, line), seconds in own.lines.items()} == {5: 2.0, 7: 1.0}
    assert all(file == f.__code__.co_filename for file, _ in own.lines)


def test_programs_without_sites_are_not_counted(own: Sampler) -> None:
    assert not sampler.chain_of(sys._getframe(), own._sites, 60)


def test_stacks_that_are_too_deep_are_looked_at_from_the_top(own: Sampler) -> None:
    f = written("def f(n, g):\n    for i in range(1):\n        g(n - 1, g) if n else look()\n    return n")
    f.__globals__["look"] = lambda: own._look(sampler.chain_of(sys._getframe(1), own._sites, 60), HOT)
    (site, *_) = put_sites(f)
    f(200, f)
    assert site.enabled and site.seconds < HOT * 200


def waiting(sampler: Sampler) -> tuple[Any, Sequence[Site]]:
    """A function that loops until it is told to end, and its sites, at which the sampler looks."""
    f = written(WAITING)
    result = functions.with_sites(f)
    assert result is not None
    code, sites = result
    f.__code__ = code
    sampler.add(code, [Site(site.source, site.names, None, False) for site in sites])
    return f, sampler._sites[id(code)][1]


def test_a_thread_looks_by_itself() -> None:
    made = Sampler()
    f, watched = waiting(made)
    ends = time.monotonic() + 60
    begun = time.perf_counter()
    f(lambda: any(site.enabled for site in watched) or time.monotonic() > ends)
    assert any(site.enabled for site in watched) and made._pid == os.getpid()
    assert 0 < sum(made.lines.values()) <= time.perf_counter() - begun + 0.1


def test_other_threads_are_looked_at_too() -> None:
    made = Sampler()
    f, watched = waiting(made)
    ends = time.monotonic() + 60
    hot = lambda: watched[0].enabled or time.monotonic() > ends  # noqa: E731
    thread = threading.Thread(target=f, args=(hot,))
    thread.start()
    thread.join()
    assert watched[0].enabled


def test_frames_are_let_go_before_what_is_seen_is_counted(own: Sampler) -> None:
    """The variables of a function end with it, also while its sites are heated and the sampler sleeps."""
    f = written("def f(n):\n    held = made()\n    for k in range(n):\n        look()\n    return n")
    put_sites(f)
    held: list[weakref.ref[Sampler]] = []
    chains: list[object] = []

    def made() -> Sampler:
        found = Sampler()
        held.append(weakref.ref(found))
        return found

    f.__globals__.update(made=made, look=lambda: chains.extend(sampler.tools()[1](own._sites, 0, 60)))
    f(2)
    assert any(chains) and held[0]() is None


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="allocations collect no garbage")
def test_no_garbage_is_collected_while_frames_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection lets other threads go on, which may leave the frames of which objects are being made."""
    seen: list[bool] = []
    looked = threading.Event()

    class Stopped(Exception):
        pass

    def look(*args: object) -> None:
        seen.append(gc.isenabled())
        looked.set()
        raise Stopped

    made = Sampler()
    monkeypatch.setattr(native, "BUILT", False)
    monkeypatch.setattr(sampler, "chain_of", look)
    thread = threading.Thread(target=looked.wait)
    thread.start()
    with pytest.raises(Stopped):
        made._watch(*sampler.tools())
    thread.join()
    assert seen == [False] and gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_has_a_sampler_of_its_own() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k * 2\n    return t")
    put_sites(f)
    child = os.fork()
    if not child:
        os._exit(0 if sampler.SAMPLER._pid == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_code_may_be_added_while_the_sampler_looks(own: Sampler) -> None:
    """As by imports in other threads, which the interpreter lets go on between two steps of a look."""

    class Names(str):
        def __eq__(self, other: object) -> bool:
            own._sites[len(own._sites)] = code, []
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    f = written(PROGRAM, look=lambda: None)
    put_sites(f)
    code = f.__code__
    looked_at = code.replace(co_filename=Names(code.co_filename))
    own._sites[id(looked_at)] = looked_at, []
    before = len(own._sites)
    own._near(looked_at)
    assert len(own._sites) > before


INTERPRETERS = """
import os, sys, time
import _xxsubinterpreters as interpreters
from dcarray.jit.loops.sites.sampler import tools

ready, ends = os.pipe(), os.pipe()
other = interpreters.create(isolated=False)
interpreters.run_string(other, f'''
import _thread, os
done = _thread.allocate_lock(); done.acquire()
def wait():
    os.write({ready[1]}, b"x"); os.read({ends[0]}, 1); done.release()
_thread.start_new_thread(wait, ())
''')
os.read(ready[0], 1)
time.sleep(0.05)  # until it waits
print(len(sys._current_frames()), len(tools()[1]({id(sys._getframe().f_code): 0}, 0, 60)) == 1)
os.write(ends[1], b"x")
interpreters.run_string(other, "done.acquire()")
time.sleep(0.2)
"""


def test_the_sampler_makes_no_frames_of_other_interpreters() -> None:
    pytest.importorskip("_xxsubinterpreters")
    done = python("-c", INTERPRETERS, status=None)
    assert done.stdout == "2 True\n", done.stderr


@pytest.mark.parametrize(("processors", "seconds"), [(2, admission.YOUNG), (1, admission.YOUNG_ALONE)])
def test_nothing_becomes_hot_in_a_young_program(
    own: Sampler, monkeypatch: pytest.MonkeyPatch, processors: int, seconds: float
) -> None:
    now, hot = [own._begun], []

    def rest(pause: float) -> None:
        now[0] += pause
        if hot:
            raise SystemExit

    monkeypatch.setattr(sampler.cores, "available", lambda: processors)
    monkeypatch.setattr(sampler.unpatched, "perf_counter", lambda: now[0])
    monkeypatch.setattr(sampler, "tools", lambda: (rest, lambda *_: {1: [(rest.__code__, 1, 0)]}))
    monkeypatch.setattr(own, "_look", lambda *_: hot.append(now[0] - own._begun))
    monkeypatch.setattr(own, "_note_refused", lambda *_: None)
    with pytest.raises(SystemExit):
        own._watch(*sampler.tools())
    assert seconds <= hot[0] <= seconds + admission.RESTING
