"""Scripts and modules with sites behave as before."""

import ast
import importlib
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from opcode import opmap
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_source import indent, programs
from site_oracle import Oracle
from written import written

import dcarray as dc
from dcarray.jit.loops.sites.importer import install_importer
from dcarray.jit.loops.sites.loop_items import LoopItems
from dcarray.jit.loops.sites.module_sites import rewritten
from dcarray.jit.loops.sites.modules import compile_module
from dcarray.jit.loops.sites.site import Site, sites_at
from dcarray.jit.loops.sites.site_code import _line_table, with_constants
from dcarray.jit.loops.syntax import eligibility


def sites_in(code: CodeType) -> list[Site]:
    """All sites of a code object and of those inside of it, outer ones first."""
    found = {id(c): c for c in code.co_consts if isinstance(c, Site)}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= {id(site): site for site in sites_in(inner)}
    return sorted(found.values(), key=lambda site: (site.source.line, -site.source.last))


def compiled(text: str, names: dict[str, Any] | None = None, is_script: bool = True) -> list[Site]:
    return sites_in(compile_module(text, "<a module>", {} if names is None else names, is_script))


def said(text: str, is_script: bool | None, **names: Any) -> list[Any]:
    """What a module prints, and the error that it ends with; without sites if ``is_script`` is None."""
    printed: list[Any] = []
    scope: dict[str, Any] = {
        "__name__": "__main__",
        "print": lambda *values: printed.append(values),
        "suppress": suppress,
        **names,
    }
    if is_script is None:
        code = compile(text, "<a module>", "exec", dont_inherit=True)
    else:
        code = compile_module(text, "<a module>", scope, is_script)
        for site in sites_in(code):
            site.heat()
    try:
        exec(code, scope)
    except Exception as error:
        printed += [type(error), str(error), traceback.extract_tb(error.__traceback__)[-1].lineno]
    if is_script is not True:  # of a script, nobody asks for them
        printed.append({name: scope[name] for name in "abcde" if name in scope})
    return printed


@settings(max_examples=80, derandomize=True, deadline=None)
@given(body=programs, inner=programs, every=st.integers(1, 3))
def test_random_modules_behave_as_before(body: list[str], inner: list[str], every: int) -> None:
    lines = [*["a = 3", "b = 2", "c = 7", "d = 8"], "def f(a, b):", *indent([*inner, "return a, c"])]
    body = [line.replace("return a", "print(a)").replace("return ", "print(e), ") for line in body]
    text = "\n".join([*lines, *body, "print(a, b, c, d)", "print(f(b, a))"])
    want = said(text, None)
    for is_script in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            oracle = Oracle(patch, every)
            got = said(text, is_script)
            assert got == (want[:-1] if is_script else want), text
            assert not oracle.missing or any(kind in got for kind in (NameError, UnboundLocalError))


# ---- which names -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("reads", [
    "def f():\n    return a", "class C:\n    b = a", "g = lambda: a", "def f():\n    global a\n    a = 3",
])  # fmt: skip
def test_names_that_functions_read_are_live(reads: str) -> None:
    text = "a = 1\nfor k in range(9):\n    a = a + k\n{}\nprint(1)\n"
    (loop,) = [s for s in compiled(text.format(reads)) if s.source.is_loop]
    assert loop.source.live == ("a",) and loop.source.needed == ("a",) and loop.resumable
    (loop,) = [s for s in compiled(text.format("")) if s.source.is_loop]
    assert loop.source.live == () and loop.source.needed == ("a",)


HERD = """
class Herd:
    m = property(lambda self: 9)
    def __init__(self): self.n = 9; self.xs = [1] * 9
h, a, b, xs, x = Herd(), 5, 0, [9, 2], np.ones(9)
"""


@pytest.mark.parametrize(("end", "change"), [
    ("h.n", "h.n = 8"), ("0, h.n - 1, 2", "h.n = 11"), ("len(h.xs)", "h.xs.append(1)"),
    ("xs[0]", "xs[0] = 8"), ("max(xs)", "xs[1] = 10"), ("max(a, 3)", "a = 6"),
    ("x.shape[0]", "x = x[1:]"), ("h.m", ""),
])  # fmt: skip
def test_a_range_is_known_to_be_the_same_while_its_ends_are(end: str, change: str) -> None:
    names: dict[str, Any] = {"np": np}
    exec(HERD, names)
    sites = compiled(f"{HERD}for k in range({end}):\n    b = b + k\nprint(b)", names)
    (loop,) = [site for site in sites if site.resumable]
    span, begun = LoopItems(loop.source, names), eval(f"range({end})", names)
    wanted = begun if end != "h.m" else None  # a property
    assert span.as_range(begun, [names[name] for name in loop.source.needed]) == wanted
    exec(change, names)
    assert span.as_range(begun, [names[name] for name in loop.source.needed]) is None


def test_annotations_of_a_module_are_computed() -> None:
    text = "def kind():\n    print(1)\n    return float\n{}t: kind() = 0.5\nprint({})\n"
    for head, seen in (("for k in range(3):\n    t = k\n    ", "t, __annotations__"), ("k = 1\n", "t, k")):
        assert said(text.format(head, seen), True) == said(text.format(head, seen), None)[:-1]


@pytest.mark.parametrize("what", ["dcarray's site 0", "dcarray's watch 0", "the range of 0"])
def test_texts_of_the_program_stay_texts(what: str) -> None:
    text = f"""
def f(n):
    s, what = 0, {what!r}
    for k in range(n):
        s += k
    return s, what
print(f(9), {what!r})
"""
    assert said(text, True) == said(text, None)[:-1]


MENTIONS = """
import {module}
a = t = 0.0
for k in range(20):
    a = a + k
    t = a * 2
{read}
def f(n):
    u = 0.0
    for k in range(n):
        u = k * 0.5
    return {module}.evaluate("u * 2")
print(f(9) if "{module}" == "reader" else 0)
"""


@pytest.mark.parametrize(("module", "read", "live"), [
    ("reader", 'print(reader.evaluate("t + 1"))', True), ("reader", '"t"', False),
    ("math", 'print("t")', False), ("math", 'np.bmat("t")', True), ("math", '__name__ == "__main__"', False),
    ("math", 'timeit("t", setup="from __main__ import t")', True), ("__main__", "print(__main__)", True),
    ("sys", 'sys.modules["a"]', True), ("doctest", '">>> t + 1"', True),
])  # fmt: skip
def test_names_in_strings_are_live_if_they_may_be_looked_up(module: str, read: str, live: bool) -> None:
    text = MENTIONS.format(module=module, read=read)
    (loop,) = [site for site in compiled(text) if site.resumable and "t = a" in site.source.source]
    assert ("t" in loop.source.live) == live


def test_libraries_find_names_in_the_frames_of_their_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(text: str) -> Any:
        frame = sys._getframe(1)
        return eval(text, frame.f_globals, frame.f_locals)

    reader = ModuleType("reader")
    reader.evaluate = evaluate  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "reader", reader)
    text = MENTIONS.format(module="reader", read='print(reader.evaluate("t + 1"))')
    assert said(text, True) == said(text, None)[:-1] == [(381.0,), (8.0,)]
    f = written(text.partition("print(f")[0] + "pass", reader=reader)
    assert dc.accelerate(f)(9) == 8.0


def test_all_names_of_an_imported_module_are_live() -> None:
    text = "a = 1\nfor k in range(9):\n    a = a + k\n    t = a\n"
    (loop,) = [s for s in compiled(text, is_script=False) if s.source.is_loop]
    assert loop.source.live == ("a", "k", "t") or loop.source.live == ("a", "k")


def test_imported_names_are_no_variables() -> None:
    text = "import math\nfrom math import sqrt\ndef g(a):\n    return a * 2\n"
    text += "for a in x:\n    a = sqrt(a) + math.pi + g(a)\n    print(a)\n"
    (found,) = [s for s in compiled(text) if s.source.line > 4]
    assert (found.source.needed, found.source.others) == (("a",), ("g", "math", "sqrt"))


FUNCTIONS = """
def plain(x, n):
    for k in range(n):
        x[k] = x[k] * 2
    return x

class Box:
    def method(self, x):
        return x * 2 + 1

    @staticmethod
    def loose(x):
        return x * 3 + 1

def outer(c):
    d = c * 2
    def inner(x):
        return x * d
    return inner

def steps(x):
    for k in x:
        yield k * 2

async def later(x):
    y = x * 2
    return y

def reader(x):
    y = x * 2
    return locals()

def other_reader(x):
    import inspect
    y = x * 2
    return inspect.currentframe().f_locals["y"]
"""


def test_sites_of_functions() -> None:
    found = {site.source.line: site.source for site in compiled(FUNCTIONS)}
    assert [*found] == [3, 4, 5, 9, 13, 18] or [*found] == [3, 4, 9, 13, 18]
    assert found[9].needed == ("x",) and found[9].returns and found[18].needed == ("d", "x")
    assert found[3].counters == frozenset() and found[4].counters == {"k"}


def test_functions_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = """
print(plain([1, 2, 3], 2), Box().method(3), Box.loose(4), outer(3)(5), [*steps([1, 2])])
print(reader(3), other_reader(3))
"""
    want = said(FUNCTIONS + calls, None)
    oracle = Oracle(monkeypatch)
    assert said(FUNCTIONS + calls, False) == want and oracle.served >= 4 and not oracle.missing


@pytest.mark.parametrize("line", [
    "print(locals()['t'])", "print(vars()['t'])", "print(eval('t'))", "print(globals()['t'])",
    "import sys\nprint(sys._getframe().f_locals['t'])",
    "import inspect\nprint(inspect.currentframe().f_locals['t'])",
    "from sys import _getframe as me\nprint(me().f_locals['t'])",
])  # fmt: skip
@pytest.mark.parametrize("inside", [False, True])
def test_code_that_reads_frames_has_no_sites(
    monkeypatch: pytest.MonkeyPatch, line: str, inside: bool
) -> None:
    if inside and "globals" in line:
        pytest.skip("they are not the function's")
    text = "n = 3\nfor k in range(n):\n    t = k * 2\n" + line
    if inside:
        text = "def f():\n    " + text.replace("\n", "\n    ") + "\nf()\n"
    assert not compiled(text)
    Oracle(monkeypatch)
    assert said(text, True) == said(text, None)[:-1] == [(4,)]


READ_INSIDE = """
def f(n):
    u = 0
    t = {inner}
    for k in range(n):
        u = u + k * 2
    v = u * 3 + 1
    return u, v, {after}
print(f(5))
"""


@pytest.mark.parametrize(("inner", "after", "bound"), [
    ("0", "[u * i for i in range(3)]", True),  # before Python 3.12 a function with a cell for u
    ("0", "{u: [u + i for i in range(2)]}", True),
    ("(u + i for i in range(3))", "list(t)", True),  # which reads u when it runs
    ("lambda: u", "t()", False),
    ("0", "[(lambda: u)() for i in range(2)]", False),
])  # fmt: skip
def test_variables_that_inner_code_reads(
    monkeypatch: pytest.MonkeyPatch, inner: str, after: str, bound: bool
) -> None:
    text = READ_INSIDE.format(inner=inner, after=after)
    loops = [site for site in compiled(text) if site.source.is_loop]
    assert bool(loops) == bound and all("u" in site.source.live for site in loops)
    want = said(text, None)
    Oracle(monkeypatch)
    assert said(text, True) == want[:-1]


@pytest.mark.parametrize("reads", [
    "[u + i for i in range(2)]", "sum(u + i for i in range(2))", "(lambda: u)()",
])  # fmt: skip
def test_variables_of_scripts_that_inner_code_reads(monkeypatch: pytest.MonkeyPatch, reads: str) -> None:
    text = f"u = 0\nfor k in range(5):\n    u = u + k * 2\nprint({reads})\n"
    assert compiled(text)
    want = said(text, None)
    Oracle(monkeypatch)
    assert said(text, True) == want[:-1]


def test_numpys_stack_reads_no_frames() -> None:
    assert compiled("import numpy as np\nfor _ in x:\n    x = np.stack([np.ones(3)] * 3)\n    print(x)\n")


# ---- what the module is ------------------------------------------------------------------------------------
def test_docstrings_annotations_lines_and_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '''# -*- coding: latin-1 -*-
"""What it is: \xe4."""
from __future__ import annotations
def f(a: int, b: "x" = 3) -> float:
    "What f is."
    c = (a +
         b)
    return 1 // (c -
        5)
print(f.__doc__, f.__annotations__, __doc__, f.__code__.co_firstlineno, f.__defaults__, f.__qualname__)
f(2)
'''
    want = said(text.encode("latin-1"), None)  # type: ignore[arg-type]
    Oracle(monkeypatch)
    assert said(text.encode("latin-1"), False) == want  # type: ignore[arg-type]
    assert ZeroDivisionError in want and 8 in want


@pytest.mark.parametrize("text", ["def f(:\n", "x = '\0'", "return 3", "from __future__ import nothing"])
def test_errors_of_the_compiler_are_its_own(text: str) -> None:
    errors = []
    for function in (compile, lambda *args, **kwargs: compile_module(text, "<a module>", {}, True)):
        with pytest.raises((SyntaxError, ValueError)) as caught:
            function(text, "<a module>", "exec", dont_inherit=True)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_strings_over_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "def f(a):\n    for k in range(3):\n        b = '''x\n        y'''\n        a = a + b\n    return a\n"
    )
    text += "print(f('z'))\n"
    want = said(text, None)
    Oracle(monkeypatch)
    assert said(text, False) == want


# ---- the importer ------------------------------------------------------------------------------------------
@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Imports a module of a text; which modules get sites is said by their names."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    asked: list[str] = []

    def wanted(file: str) -> bool:
        asked.append(file)
        return "with_sites" in file

    install_importer(("textwrap",), wanted)

    def load(name: str, text: str) -> Any:
        import importlib

        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        try:
            return importlib.import_module(name)
        finally:
            sys.modules.pop(name, None)

    load.asked = asked  # type: ignore[attr-defined]
    return load


def test_imported_modules_get_sites(imported: Any) -> None:
    text = "def f(x):\n    return x * 2 + 1\n"
    plain, own = imported("module_without", text), imported("module_with_sites", text)
    assert not sites_in(plain.f.__code__) and len(sites_in(own.f.__code__)) == 1
    assert plain.f(3) == own.f(3) == 7 and own.__file__.endswith("module_with_sites.py")
    assert own.__spec__.origin == own.__file__ and own.f.__code__.co_filename == own.__file__
    assert {Path(file).stem for file in imported.asked} == {"module_without", "module_with_sites"}


def test_modules_are_reloaded_and_asked_for_their_code(imported: Any) -> None:
    import importlib

    own = imported("module_with_sites_again", "def f(x):\n    y = x * 2\n    return y + 1\n")
    code = own.__loader__.get_code("module_with_sites_again")
    assert not sites_in(code)  # it may run anywhere
    sys.modules["module_with_sites_again"] = own
    try:
        assert importlib.reload(own).f(3) == 7
    finally:
        del sys.modules["module_with_sites_again"]


def test_sites_may_ask_at_once() -> None:
    code = compile_module(FUNCTIONS, "<a module>", {}, False, eagerly=True)
    assert all(site.enabled is (site.outer is None) for site in sites_in(code))
    assert not any(site.enabled for site in compiled(FUNCTIONS))


def test_errors_of_imported_modules(imported: Any) -> None:
    with pytest.raises(SyntaxError):
        imported("module_with_sites_wrong", "def f(:\n")
    with pytest.raises(ZeroDivisionError) as caught:
        imported("module_with_sites_failing", "a = 3\nb = a * 2\n1 // (b - 6)\n")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == 3


def test_the_standard_library_gets_no_sites_unless_it_is_asked_for(
    imported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    monkeypatch.delitem(sys.modules, "textwrap", raising=False)
    import colorsys
    import textwrap

    assert not sites_in(colorsys.rgb_to_hls.__code__) and sites_in(textwrap.TextWrapper._wrap_chunks.__code__)
    assert not {"colorsys", "textwrap"} & {Path(file).stem for file in imported.asked}


def test_classes_that_have_each_other_as_attributes_are_accelerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "classes_in_circles.py").write_text("""
import numpy as np
class Inner:
    def added(self, x):
        for i in range(x.size):
            x[i] += i
        return x
class Outer:
    kind = Inner
    def doubled(self, x):
        for i in range(x.size):
            x[i] *= 2
        return x
Outer.same = Outer
Inner.owner = Outer
""")
    monkeypatch.syspath_prepend(tmp_path)
    module: Any = importlib.import_module("classes_in_circles")
    inner, outer = module.Inner, module.Outer
    with dc.options(jit="eager"):
        for target in (module, outer):
            before = inner.added.__code__, outer.doubled.__code__
            made: Any = dc.accelerate(target)
            assert sites_in(inner.added.__code__) and sites_in(outer.doubled.__code__)
            assert outer().doubled(np.ones(30)).tolist() == [2.0] * 30
            if target is module:
                made.undo()
                assert (inner.added.__code__, outer.doubled.__code__) == before


FIRST_OF_PEAKS = """
def peaks(x, gap):
    found = [0]
    for i in range(1, len(x) - 1):
        if i - found[-1] >= gap:
            found.append(i)
        elif x[i] > x[found[-1]]:
            found[-1] = i
    return found
"""


def test_the_source_of_a_site_is_a_program() -> None:
    sources = [place.source.source for place in rewritten(FIRST_OF_PEAKS, "f.py", True).places]
    assert any(source.startswith("if x[i]") for source in sources)
    for source in sources:
        ast.parse(source)


def test_a_module_that_is_used_to_find_plans_is_accelerated() -> None:
    import collections

    with dc.options(jit="eager"), dc.accelerate(collections):
        assert [*collections.ChainMap({"a": 1}, {"b": 2})] == ["b", "a"]
        assert collections.Counter("abca") + collections.Counter("ab") == {"a": 3, "b": 2, "c": 1}


def test_the_end_of_a_function_or_a_loop_has_the_line_before_it() -> None:
    """As Python 3.12 leaves it without a line after the code that leaves a site; a handler keeps none."""
    pop, load, done, back, handler = (
        opmap[n] for n in ("POP_TOP", "LOAD_CONST", "RETURN_VALUE", "JUMP_BACKWARD", "PUSH_EXC_INFO")
    )
    code: Any = SimpleNamespace(
        co_code=bytes([pop, 0, pop, 0, back, 4, pop, 0, load, 0, done, 0, handler, 0]),
        co_linetable=b"\xe8\x00" + b"\xf9" + b"\xfb",  # one instruction with a line, two and four without
    )
    assert _line_table(code) == b"\xe8\x00" + b"\xe9\x00" + b"\xea\x00" + b"\xf8"


def test_code_without_sites_stays_what_was_loaded() -> None:
    """A package has thousands of functions without sites, and each run loads them."""
    made = rewritten("def f(a):\n    return a\n\ndef g(a):\n    a += 1\n    return a\n", "<two>", False)
    new = with_constants(made.code, made.code, made.places, sites_at(made.places, {}))
    inner = [[const for const in code.co_consts if type(const) is CodeType] for code in (made.code, new)]
    assert inner[0][0] is inner[1][0] and not sites_in(inner[1][0]) and sites_in(inner[1][1])


def test_the_work_for_a_statement_does_not_grow_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ast.stmt] = []
    monkeypatch.setattr(eligibility, "list_of", lambda stmt: seen.append(stmt) or "")
    rewritten("def f(a, b):\n" + "    a = a + b * 2.0\n" * 300, "<long>", False)
    assert len(seen) < 3000
