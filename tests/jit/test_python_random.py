"""Compiled loops that draw from Python's `random`: its numbers, and its generators' states afterwards."""

import random
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest
from drawing import DRAWING, PYTHONS, agree, drawing_loop, state_of
from written import written

import dcarray as dc
from dcarray.jit.loops.syntax.supported import RANDOM

pytestmark = pytest.mark.eager(debug=True)


DRAWS = [
    "random()", "uniform(-1.0, 2.0)", "uniform(0, 3)", "uniform(x, i)", "randint(0, 9)", "randint(5, 5)",
    "randint(-3, i)", "randint(k[i], 80)", "randint(0, (1 << 32) - 2)", "randrange(10)", "randrange(8)",
    "randrange(i + 1)", "randrange(3, 1000, 7)", "randrange(10, -50, -3)", "randrange(-5, k[i], 2)",
    "getrandbits(0)", "getrandbits(5)", "getrandbits(32)", "getrandbits(33)", "getrandbits(50)",
    "getrandbits(62) % 1000",
    "choice(xs)", "choice([-1, 1])", "choice((0.5, x, 2.5))",
    "gauss()", "gauss(1.0, x)", "gauss(0, 1)", "gauss(sigma=2.0)", "normalvariate(0.5, 2.0)",
    "normalvariate(0, 1)", "lognormvariate(0.0, 0.5)", "expovariate(2.0)", "expovariate(-3)",
    "gammavariate(2.5, 1.0)", "gammavariate(0.5, 2.0)", "gammavariate(1.0, 2.0)", "betavariate(2.0, 0.5)",
    "vonmisesvariate(1.0, 2.0)", "vonmisesvariate(0.0, 0.0)", "paretovariate(3.0)",
    "weibullvariate(1.0, 1.5)", "triangular()", "triangular(0, 2, 1)", "triangular(0.0, 2.0)",
    "triangular(mode=0.25)",
]  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS)
def test_draws(draw: str) -> None:
    """Of a generator of the program and of the module, a thousand times: longer than a state."""
    text = """
        def f(rng, xs, k, out):
            x = 0.5
            for n in range(1000):
                i = n % 50
                x = 0.5 * x + 1e-3 * abs({rng}.{draw})
                out[i] = {rng}.{draw} + x
            return x
    """
    xs, k = np.random.RandomState(2).rand(50), np.arange(1, 51)
    for rng in ("rng", "random"):
        body = text.format(rng=rng, draw=draw)
        agree(body, random.Random, xs, k, np.zeros(50), seeds=1)


def test_all_methods_are_tested() -> None:
    assert {draw.partition("(")[0] for draw in DRAWS} == RANDOM


def test_imported_functions() -> None:
    agree(
        """
        from random import choice, gauss, randint as whole, random as draw
        def f(out):
            mine = random.random
            for i in range(700):
                out[i % 20] = draw() + whole(1, 6) * gauss(0.0, 1.0) - choice(out) + mine()
        """,
        np.zeros(20),
    )  # fmt: skip


def test_choices() -> None:
    """From rows, lists and tuples that are given, and from what is left to Python."""
    choices = [
        ("rng.choice(grid)[1]", True), ("rng.choice((1.5,))", True), ("len(rng.choice(words))", None),
        ("rng.choice(range(4))", None), ("rng.choice([1, 2.0])", None), ("rng.choice(grid[0, 1:])", True),
    ]  # fmt: skip
    for choice, served in choices:
        text = f"""
            def f(rng, grid, out):
                words = ["a", "bc"]
                for i in range(700):
                    out[i % 5] = out[i % 5] * 0.5 + {choice}
                return words
        """
        agree(text, random.Random, np.eye(4) + 2.0, np.zeros(5), served=served)
    text = "def f(rng, x):\n    s = 0\n    for i in range(90):\n        s += rng.choice(x)\n    return s\n"
    f = written(text)
    g, before = dc.accelerate(f), dc.report().loops
    for items in ([0.5, -2.5, 1.0], [3, 4, 5, 6, 7], [1, 1.0], [], (), [True, False]):
        results = []
        for h in (f, g):
            rng = random.Random(2)
            try:
                results.append((repr(h(rng, items)), state_of(rng)))
            except IndexError as error:
                results.append((repr(error), state_of(rng)))
        assert results[0] == results[1]
    assert dc.report().loops >= before + 1


def test_where_the_program_draws() -> None:
    """A number is drawn only where Python evaluates the call."""
    bodies = [
        "x = rng.random() if y > 0.5 else 0.0",
        "x = rng.random() if y > 0.5 else rng.gauss()",
        "x = 1.0 if y > 0.5 and rng.random() < 0.5 else 0.0",
        "x = 1.0 if y > 0.5 or rng.randint(0, 1) == 1 else 0.0",
        "x = 0.0\n    if y > 0.7:\n        x = rng.random()\n    elif y > 0.3:\n        x = rng.gauss(y)",
        "x = 0.0\n    rng.random()\n    rng.randrange(3)",
        "x = 0.0\n    while x < y:\n        x = x + rng.expovariate(3.0)",
        "x = rng.random()\n    if x > 0.97:\n        return x",
        "x = 0.0\n    while rng.random() < y:\n        x = x - random.random() * rng.random()",
        "x = 0.0\n    for k in range(rng.randint(0, 3)):\n        x = x + rng.random()",
        "x = rng.choice((1.5, float(y))) + rng.choice([1, i])",
    ]
    for body in [*DRAWING, *bodies]:
        agree(drawing_loop(body), random.Random, np.random.RandomState(3).rand(60), np.zeros(60))


def test_state_is_shared_with_python() -> None:
    """What the program draws between compiled loops is from the same streams, the kept number included."""
    agree(
        """
        def f(rng, n, out):
            found = []
            for turn in range(6):
                found.append(rng.gauss())
                found.append(random.sample(range(100), turn))
                for i in range(n):
                    out[i % 30] = rng.randrange(50) + random.gauss(0.0, 2.0) + rng.gauss()
                found.append((rng.getstate()[2] is None, random.getstate()[2] is None))
                found.append(rng.choices([1, 2, 3], k=4))
                random.shuffle(found)
                if turn == 3:
                    rng.seed(turn)
            return repr(found)
        """,
        random.Random, 31, np.zeros(30),
    )  # fmt: skip


def test_generators_of_objects_and_modules() -> None:
    text = """
        import random
        import numpy as np
        rng = random.Random(1)
        class Walk:
            def __init__(self):
                self.rng, self.x = random.Random(4), 0.0
            def step(self):
                self.x = self.x + self.rng.uniform(-1.0, 1.0)
        def turn(x):
            return x + rng.gauss(0.0, 1.0)
        def f(rng, out):
            walk = Walk()
            for i in range(200):
                walk.step()
                out[i % 50] = turn(walk.x) + rng.random()
            return walk.rng.random()
    """
    f = written(text)
    module = types.ModuleType(f.__globals__["__name__"])
    vars(module).update(f.__globals__)
    sys.modules[module.__name__], results = module, []
    try:
        names = sys.modules[module.__name__].__dict__
        for name in ("turn", "f"):
            names[name] = types.FunctionType(names[name].__code__, names, name)
        for method in ("__init__", "step"):
            old = vars(names["Walk"])[method]
            setattr(names["Walk"], method, types.FunctionType(old.__code__, names, method))
        for h in (names["f"], dc.accelerate(names["f"])):
            for own in (False, True):
                rng, out = random.Random(7), np.zeros(50)
                names["rng"] = rng if own else random.Random(3)
                results.append((h(rng, out), out.tobytes(), state_of(rng), state_of(names["rng"])))
        assert results[:2] == results[2:]
        assert dc.report().loops == 2
    finally:
        del sys.modules[module.__name__]


ERRORS = [
    ("out[i] = rng.random()\n        out[k[i]] = rng.gauss()", "k[40] = 1000"),
    ("out[i] = rng.random() / float(xs[i])", "xs[20] = 0.0"),
    ("out[i] = rng.randrange(int(k[i]))", "k[20] = 0"),
    ("out[i] = rng.randint(3, int(k[i]) + 2)", "k[20] = -4"),
    ("out[i] = rng.randint(0, int(k[i]))", "k[20] = 1 << 40"),
    ("out[i] = xs[rng.randrange(k[i])]", "k[20] = 70"),
    ("out[i] = rng.expovariate(float(xs[i]))", "xs[20] = 0.0"),
    ("out[i] = rng.triangular(0.0, float(xs[i]) - 0.5)", "xs[20] = 0.5"),
    ("out[i] = rng.lognormvariate(float(xs[i]), 1.0)", "xs[20] = 1e5"),
    ("assert xs[i] < 5.0\n        out[i] = rng.gauss()", "xs[33] = 6.0"),
]


@pytest.mark.parametrize(("body", "fault"), ERRORS)
@pytest.mark.parametrize("rng", ["rng", "random"])
def test_errors_in_the_middle(body: str, fault: str, rng: str) -> None:
    """Where something raises an error, the state is what it is when Python raises it."""
    text = f"""
    def f(rng, xs, k, out):
        for i in range(50):
            {body.replace("rng.", rng + ".").replace(chr(10), chr(10) + "    ")}
        return out
    """
    rs = np.random.RandomState(2)
    xs, k = rs.rand(50) + 0.6, rs.randint(1, 50, size=50)
    agree(text, random.Random, xs, k, np.zeros(50))
    exec(fault, {"xs": xs, "k": k})
    agree(text, random.Random, xs, k, np.zeros(50), served=None)  # perhaps as runs of statements


def test_one_generator_under_two_names() -> None:
    f = written("""
        import random
        def f(a, b, out):
            for i in range(700):
                out[i % 50] = a.random() - b.random() * random.random()
            return a.random()
    """)
    for pair in (lambda: [random.Random(3)] * 2, lambda: [PYTHONS, random.Random(3)]):
        results = []
        for g in (f, dc.accelerate(f)):
            random.seed(1)
            (a, b), out = pair(), np.zeros(50)
            results.append((g(a, b, out), out.tobytes(), *map(state_of, (a, b, PYTHONS))))
        assert results[0] == results[1]
    assert dc.report().loops == 2


def test_others_are_left_to_python() -> None:
    class Mine(random.Random):
        def random(self) -> float:
            return 0.25

    def with_attribute(seed: int) -> random.Random:
        made = random.Random(seed)
        vars(made)["random"] = lambda: 0.75
        return made

    text = """
        def f(rng, out):
            for i in range(50):
                out[i] = rng.random()
    """
    for kind in (Mine, with_attribute):
        agree(text, kind, np.zeros(50), served=None)  # their methods are functions like others
    out = np.zeros(50)
    dc.accelerate(written(text))(random.SystemRandom(), out)
    assert len(np.unique(out)) > 40
    for call in ("random.seed(i)", "random.shuffle([1, 2, 3])", "random.sample((1, 2, 3), 2)[0]"):
        body = f"def f(out):\n    for i in range(50):\n        {call}\n        out[i] = random.random()\n"
        before = dc.report().loops
        agree(body, np.zeros(50), served=None)
        assert dc.report().loops == before


CHANGES: list[tuple[Any, str, Any]] = [
    (random, "random", lambda: 0.5), (random, "randint", PYTHONS.randrange),
    (random.Random, "uniform", lambda self, a, b: 0.25),
    (random.Random, "randrange", lambda self, a, b: a + b), (random.Random, "random", lambda self: 0.125),
    (random.Random, "_randbelow", vars(random.Random)["_randbelow_without_getrandbits"]),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[1])
def test_functions_and_methods_bound_anew(
    change: tuple[Any, str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    f = written("""
        import random
        def f(rng, out):
            for i in range(50):
                out[i] = random.random() + rng.uniform(1, 2) + random.randint(0, 5)
    """)
    g, results, loops = dc.accelerate(f), [], []
    for changes in (False, True):
        if changes:
            monkeypatch.setattr(*change)
        for h in (f, g):
            random.seed(2)
            rng, out = random.Random(5), np.zeros(50)
            h(rng, out)
            results.append((out.tobytes(), state_of(rng), state_of(PYTHONS)))
        loops.append(dc.report().loops)
    assert results[0] == results[1] and results[2] == results[3] != results[0]
    assert loops == [1, 1]


def test_a_method_that_is_bound_anew_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was traced while a method was another one is not kept."""
    f = written(
        "import random\ndef f(out):\n    for i in range(50):\n        out[i] = random.paretovariate(2.0)\n"
    )
    found = []
    for g in (f, dc.accelerate(f)):
        with monkeypatch.context() as patch:
            patch.setattr(random.Random, "paretovariate", lambda self, alpha: alpha * self.random())
            g(np.zeros(50))
        out = np.zeros(50)
        random.seed(3)
        g(out)
        found.append(out.tobytes())
    assert found[0] == found[1]


def test_other_threads() -> None:
    """While the program has another thread, which may draw from the same generator, loops are Python's."""
    text = "def f(rng, out):\n    for i in range(50):\n        out[i] = rng.random()\n"
    done = threading.Event()
    other = threading.Thread(target=done.wait, args=(20,))
    other.start()
    try:
        agree(text, random.Random, np.zeros(50), served=False)
    finally:
        done.set()
        other.join()
    agree(text, random.Random, np.zeros(50))


def test_a_state_that_was_set() -> None:
    """Positions at both ends of a state, and numbers that `gauss` keeps of another type."""
    text = "def f(rng, n):\n    s = 0.0\n    for i in range(n):\n        s += rng.{}()\n    return s\n"
    functions = [written(text.format(name)) for name in ("gauss", "random")]
    pairs = [(f, dc.accelerate(f)) for f in functions]
    words = random.Random(6).getstate()[1][:-1]
    for position in (0, 1, 623, 624):
        for kept in (None, 0.0, -0.0, 1.5, 2, np.float64(0.5)):
            for pair in pairs:
                results = []
                for h in pair:
                    rng = random.Random()
                    rng.setstate((3, (*words, position), kept))
                    results.append((repr(h(rng, 5)), state_of(rng)))
                assert results[0] == results[1]
    assert dc.report().loops == 32
