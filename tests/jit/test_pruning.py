"""Refused sites are taken out of the code of functions, which does the same and keeps its other sites."""

import ast
import gc
import inspect
import signal
import sys
import threading
import time
import weakref
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.jit.loops.sites import codes, pruning, sampler
from dcarray.jit.loops.sites.functions import put_sites
from dcarray.jit.loops.sites.loop_requests import TOO_SHORT
from dcarray.jit.loops.sites.modules import compile_module
from dcarray.jit.loops.sites.plan_values import PlanMismatch, fetcher
from dcarray.jit.loops.sites.pruning import prune
from dcarray.jit.loops.sites.sampler import SAMPLER, Sampler
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.syntax.originals import original
from dcarray.tiering.admission import PRUNED

needs_extension = pytest.mark.skipif(not BUILT, reason="there is no C extension")
PROGRAM = """
def f(x, n):
    a = x * 2
    b = a + n
    for i in range(n):
        print(i)
        c = x + i
        x = c * b
    return x - a
"""


def sites_in(code: CodeType) -> list[Site]:
    found = {id(c): c for c in code.co_consts if isinstance(c, Site)}
    return sorted(found.values(), key=lambda site: site.source.line)


def sited(text: str = PROGRAM) -> tuple[FunctionType, list[Site]]:
    f = written(text, print=lambda k: None)
    return f, put_sites(f)


@needs_extension
def test_nothing_is_taken_out_while_a_tool_looks() -> None:
    f, sites = sited()
    code = f.__code__
    sites[0].refuse("no")
    for tool in (lambda *_: None, None):
        sys.setprofile(tool)
        pruning.prune_soon(code, sites)
        for _ in range(3):  # here it is done
            pass
        sys.setprofile(None)
        assert (f.__code__ is code) == bool(tool)


def test_refused_sites_are_taken_out_and_others_stay() -> None:
    f, sites = sited()
    plain, code = original(f), f.__code__
    assert len(sites) >= 3
    first = next(site for site in sites if site.source.line == 3)
    first.refuse("no")
    prune(code, sites)
    assert f.__code__ is not code
    assert first not in sites_in(f.__code__)
    assert {id(s) for s in sites_in(f.__code__)} == {id(s) for s in sites if s is not first}
    assert original(f) is plain
    assert f(3.0, 4) == FunctionType(plain, f.__globals__)(3.0, 4)


def test_methods_and_functions_of_modules_are_found_by_name() -> None:
    text = "class A:\n    @staticmethod\n    def f(x):\n        y = x * 2\n        return y + 1\n"
    text += "    def g(self, x):\n        y = x * 3\n        return y + 1\n"
    names: dict[str, Any] = {"__name__": "pruned"}
    exec(compile_module(text, "pruned.py", names, is_script=True), names)
    A = names["A"]
    for function in (A.f, A.g):
        code = function.__code__
        for site in sites_in(code):
            site.refuse("no")
        prune(code, sites_in(code))
        assert function.__code__ is original(function) and not sites_in(function.__code__)
    assert (A.f(1), A().g(1)) == (3, 4)


def test_functions_in_functions_keep_their_sites() -> None:
    text = "def f(x):\n    def inner(z):\n        y = z * 4\n        return y + 1\n    return inner(x)\n"
    f, (own, *inside) = sited(text)
    code = f.__code__
    (inner,) = [c for c in code.co_consts if isinstance(c, CodeType)]
    assert inside and {id(s) for s in sites_in(inner)} == {id(s) for s in inside}
    prune(inner, inside)  # nobody knows the function: it stays
    own.refuse("no")
    prune(code, [own])
    (inner,) = [c for c in f.__code__.co_consts if isinstance(c, CodeType)]
    assert not sites_in(f.__code__) and {id(s) for s in sites_in(inner)} == {id(s) for s in inside}
    for site in inside:
        site.refuse("no")
    prune(f.__code__, [])
    assert f(1) == 5


def test_what_is_bound_to_the_name_now_is_not_touched() -> None:
    f, sites = sited()
    code = f.__code__
    other = f.__globals__["f"] = written("def f(x, n): return x")
    before = other.__code__
    f.__code__ = original(f)
    sites[0].refuse("no")
    prune(code, sites)
    assert other.__code__ is before and f.__code__ is original(f)


def test_the_sampler_has_code_pruned_that_is_seen_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Sampler()
    monkeypatch.setattr(sampler, "start_thread", lambda function, *args: None)
    monkeypatch.setattr(codes, "SAMPLER", own)
    monkeypatch.setattr(pruning, "SAMPLER", own)
    pruned: list[CodeType] = []
    own.prune = lambda code, sites: pruned.append(code)
    f = written(PROGRAM)
    sites = put_sites(f)
    f.__globals__["print"] = lambda k: own._note_refused(
        sampler.chain_of(sys._getframe(1), own._sites, 60)[0][0], PRUNED / 2
    )
    f(1.0, 4)
    assert pruned == []  # none is refused
    sites[0].refuse("no")
    f(1.0, 4)
    assert pruned == [f.__code__]
    f(1.0, 1)
    assert len(pruned) == 1  # seldom from then on
    f(1.0, 1)
    assert len(pruned) == 2


@needs_extension
def test_other_threads_have_the_main_thread_prune(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syntax trees that two threads make at once may fail.  Errors of the program's are not taken for ours:
    of handlers of signals, which wait, and of its own classes, which another thread may raise here."""
    from dcarray._native.extension import have_done

    before, ran = signal.signal(signal.SIGALRM, lambda *_: {}["handled"]), list[str]()

    class Own(Exception): ...

    def fail(kind: type[Exception] = Own, /) -> None:
        raise kind

    def asks() -> None:
        started.wait()
        have_done(partial(fail, ValueError))
        have_done(lambda: (signal.raise_signal(signal.SIGALRM), ran.append(threading.current_thread().name)))

    started = threading.Event()
    threading.Thread(target=asks).start()  # which a handler's exception would confuse
    with pytest.raises(KeyError, match="handled"):
        started.set()
        for _ in range(1000):
            time.sleep(0.001)
    signal.signal(signal.SIGALRM, before)
    assert ran == ["MainThread"]
    with pytest.raises(Own):
        have_done(fail)


@needs_extension
def test_no_syntax_tree_is_made_while_the_program_makes_one() -> None:
    """CPython 3.11 counts their depths in one place; the collector calls functions while one is made."""
    f = written(PROGRAM)
    sites = put_sites(f)
    calls: list[str] = []

    def called(phase: str, info: Any) -> None:
        calls.append(phase)
        pruning.prune_soon(f.__code__, sites)
        for _ in range(3):  # here it is done
            pass

    before = gc.get_threshold()
    gc.callbacks.append(called)
    gc.set_threshold(100)
    try:
        ast.parse("x = [1, 2]\n" * 1000)  # no SystemError
    finally:
        gc.callbacks.remove(called)
        gc.set_threshold(*before)
    assert calls


def test_an_input_is_looked_up_without_a_syntax_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of ours does it, while the program's may make one."""
    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", None)
        fetch = fetcher("n.real * k + n", {"k": 0, "m": 1, "n": 2})
    assert callable(fetch) and fetch((2, "m", 3)) == 9
    with pytest.raises(PlanMismatch, match="not known"):
        fetcher("n + q", {"n": 0})


@needs_extension
@pytest.mark.parametrize("room", range(3, 12))
def test_what_the_main_thread_does_at_the_limit_of_recursion_ends(
    room: int, capfd: pytest.CaptureFixture[str]
) -> None:
    f = written(PROGRAM)
    sites = put_sites(f)

    def down(n: int) -> None:
        if n:
            return down(n - 1)
        pruning.prune_soon(f.__code__, sites)
        for _ in range(3):  # here it is done
            pass

    with suppress(RecursionError):
        down(sys.getrecursionlimit() - len(inspect.stack()) - room)
    assert capfd.readouterr() == ("", "")


def test_a_few_operations_on_numbers_get_no_plan() -> None:
    f = written("def f(x, y):\n    a = x * y\n    b = a + x\n    return b * a\n")
    with dc.options(jit="background", cache_dir=None):
        g = dc.accelerate(f)
        assert g(2.0, 3.0) == 48.0
        (site,) = [s for s in SAMPLER.sites() if s.names is f.__globals__ and s.outer is None]
        for _ in range(20):
            site.heat()
            assert g(2.0, 3.0) == 48.0
            dc.wait()
        assert site.refused == TOO_SHORT
        assert all(one.refused for one in site.every_inner())
        assert site.runs == 0
        h = written("def f(x, y):\n    a = x * y\n    b = a + x\n    return b * a\n")
        g = dc.accelerate(h)
        x, y = np.ones(100_000), np.full(100_000, 2.0)
        g(x, y)
        (site,) = [s for s in SAMPLER.sites() if s.names is h.__globals__ and s.outer is None]
        site.heat()
        for _ in range(20):
            g(x, y)
            dc.wait()
        assert site.runs and not site.refused


@needs_extension
def test_the_variables_of_a_function_end_with_it_while_another_is_pruned() -> None:
    """A reference to a frame would keep them until garbage is collected."""
    f = written(PROGRAM)
    sites = put_sites(f)
    held: list[weakref.ref[Any]] = []

    def user() -> None:
        made = Made()
        held.append(weakref.ref(made))
        pruning.prune_soon(f.__code__, sites)
        for _ in range(3):  # here it is done
            pass

    class Made: ...

    gc.disable()
    try:
        user()
        assert held[0]() is None
    finally:
        gc.enable()
