"""Compiled loops that draw random numbers: NumPy's streams, and its generators' states afterwards."""

import random
import sys
import textwrap
import threading
import types
from typing import Any

import numpy as np
import pytest
from drawing import DRAWING, KINDS, agree, drawing_loop, state_of
from written import written

import dcarray as dc
from dcarray.jit.loops.entry import generators

pytestmark = pytest.mark.eager(debug=True)


ISING = """
    def f(config, beta):
        N = len(config)
        for i in range(N):
            for j in range(N):
                a = np.random.randint(0, N)
                b = np.random.randint(0, N)
                s = config[a, b]
                nb = config[(a + 1) % N, b] + config[a, (b + 1) % N]
                nb = nb + config[(a - 1) % N, b] + config[a, (b - 1) % N]
                cost = 2 * s * nb
                if cost < 0:
                    s *= -1
                elif rand() < np.exp(-cost * beta):
                    s *= -1
                config[a, b] = s
        return config
"""


def test_ising() -> None:
    config = np.random.RandomState(1).randint(2, size=(12, 12)) * 2 - 1
    agree(ISING, config, 0.4)


def test_the_second_of_a_pair_is_kept() -> None:
    text = """
        def f(n):
            total = np.random.randn()
            for i in range(n):
                total = total + np.random.standard_normal() * rand()
            return total, np.random.normal(1.0, 2.0), rand()
    """
    for n in (1, 2, 5, 8):
        agree(text, n)


def test_where_the_program_draws() -> None:
    """A number is drawn only where Python evaluates the call."""
    bodies = [
        "x = rng.random() if y > 0.5 else 0.0",
        "x = rng.random() if y > 0.5 else rng.standard_normal()",
        "x = 1.0 if y > 0.5 and rng.random() < 0.5 else 0.0",
        "x = 1.0 if y > 0.5 or rng.random() < 0.5 else 0.0",
        "x = 0.0\n    if y > 0.7:\n        x = rng.random()\n    elif y > 0.3:\n        x = rng.normal(y)",
        "x = 0.0\n    rng.random()",
        "x = 0.0\n    for k in range(i % 3):\n        x = x + rng.random()",
        "x = 0.0\n    while x < y:\n        x = x + rng.exponential(0.3)",
        "x = 0.0\n    for k in range(rng.integers(0, 4)):\n        x = x + rng.random()",
        "x = (rng.random(), rng.standard_normal())[1]",
        "x = abs(rng.standard_normal())\n    x, y = rng.random(), x\n    x = x - y",
    ]
    for body in [*DRAWING, *bodies]:
        agree(drawing_loop(body), np.random.default_rng, np.random.RandomState(3).rand(60), np.zeros(60))


def test_a_chain_of_comparisons_is_left_to_python() -> None:
    agree(
        """
        def f(rng, out):
            for i in range(50):
                out[i] = 0.2 < rng.random() < rng.random()
        """,
        np.random.default_rng, np.zeros(50), served=False,
    )  # fmt: skip


def test_nested_loops_and_functions() -> None:
    agree(
        """
        def walk(rng, n, step):
            x = 0.0
            for k in range(n):
                x = x + step * rng.normal()
            return x

        def f(rng, out):
            for i in range(6):
                for j in range(5):
                    out[i, j] = walk(rng, i + j, 0.5) + rng.random()
        """,
        np.random.default_rng, np.zeros((6, 5)),
    )  # fmt: skip


def test_a_global_generator_in_a_function() -> None:
    """Also where the loop has it by another name."""
    module = types.ModuleType("of_generators")
    text = """
        import numpy as np
        rng = np.random.default_rng(1)
        rs = np.random.RandomState(2)
        def step(x):
            return x + rng.normal() * rs.rand()
        def f(mine, out):
            for i in range(50):
                out[i] = step(mine.random())
                if out[i] > 0.5:
                    out[i] = out[i] - mine.standard_normal()
    """
    f = written(text)
    vars(module).update(f.__globals__, __name__="of_generators")
    sys.modules["of_generators"] = module
    try:
        g = types.FunctionType(f.__code__, vars(module), "f")
        vars(module)["step"] = types.FunctionType(f.__globals__["step"].__code__, vars(module), "step")
        compiled, results = dc.accelerate(g), []
        for h in (g, compiled):
            for own in (True, False):
                rng = vars(module)["rng"] = np.random.default_rng(7)
                rs = vars(module)["rs"] = np.random.RandomState(8)
                out = np.zeros(50)
                h(rng if own else np.random.default_rng(9), out)
                results.append((out.tobytes(), state_of(rng), state_of(rs)))
        assert results[:2] == results[2:]
        assert dc.report().loops == 2
    finally:
        del sys.modules["of_generators"]


def test_two_generators() -> None:
    text = """
        def f(a, b, out):
            for i in range(50):
                out[i] = a.random() - b.standard_normal()
                if a.random() < 0.3:
                    out[i] = out[i] + b.random() + rand()
            return a.random()
    """
    agree(text, np.random.default_rng, np.random.RandomState, np.zeros(50))
    agree(text, np.random.RandomState, np.random.RandomState, np.zeros(50))
    f = written("import numpy as np\nfrom numpy.random import rand\n" + textwrap.dedent(text))
    results = []
    for g in (f, dc.accelerate(f)):  # one generator by two names
        rng = np.random.default_rng(5)
        np.random.seed(1)
        results.append((g(rng, rng, np.zeros(50)), state_of(rng)))
        rng = np.random.default_rng(5)
        other = np.random.Generator(rng.bit_generator)
        results[-1] += (g(rng, other, np.zeros(50)), state_of(rng))
    assert results[0] == results[1]


def test_state_is_shared_with_python() -> None:
    """What the program draws between compiled loops is from the same streams."""
    agree(
        """
        def f(rng, out):
            found = []
            for turn in range(4):
                found.append(rng.integers(0, 100, size=3).tolist())
                found.append(np.random.standard_normal(turn).tolist())
                for i in range(30):
                    out[i] = rng.integers(0, 50) + np.random.randn()
                found.append(rng.choice(10))
                found.append(np.random.randint(0, 5, dtype=np.uint8))
                found.append(list(out))
            return repr(found)
        """,
        np.random.default_rng, np.zeros(30),
    )  # fmt: skip


def test_half_of_a_word_is_kept() -> None:
    """A 64-bit generator that has given 32 bits keeps the others for the next small integer."""
    agree(
        """
        def f(rng, out):
            rng.integers(0, 5)
            for i in range(31):
                out[i] = rng.integers(0, 1000)
            return rng.integers(0, 1000), rng.random()
        """,
        np.random.default_rng, np.zeros(31),
    )  # fmt: skip


ERRORS = [
    ("out[i] = rng.normal(0.0, xs[i])", "xs[30] = -1.0"),
    ("out[i] = rng.random()\n        out[k[i]] = rng.random()", "k[40] = 1000"),
    ("out[i] = rng.random() / float(xs[i])", "xs[20] = 0.0"),
    ("out[i] = rng.uniform(0.0, xs[i])", "xs[20] = np.inf"),
    ("out[i] = rng.integers(0, int(k[i]))", "k[20] = 0"),
    ("out[i] = rng.poisson(xs[i])", "xs[20] = np.nan"),
    ("out[i] = xs[rng.integers(k[i], 50)]", "k[20] = 1000000"),
    ("out[i] = xs[rng.integers(0, k[i])]", "k[20] = -(1 << 50)"),
    ("out[i] = xs[rng.geometric(xs[i] / 2) % 50]", "xs[20] = -1.0"),
    ("out[i] = rng.standard_gamma(xs[i])", "xs[20] = -1e-300"),
    ("out[i] = rng.normal(xs, xs)[i]", "xs[20] = -0.1"),
    ("out[i] = rng.binomial(3, xs[i] / 2)", "xs[20] = 2.2"),
    ("out[i] = rng.triangular(0, xs[i], 2)", "xs[20] = 2.1"),
    ("out[i] = rng.beta(1.0, xs[i])", "xs[20] = 0.0"),
]


@pytest.mark.parametrize(("body", "fault"), ERRORS)
@pytest.mark.parametrize("kind", ["PCG64", "RandomState"])
def test_errors_in_the_middle(body: str, fault: str, kind: str) -> None:
    """Where something raises an error, the state is what it is when Python raises it."""
    if kind == "RandomState":
        body = body.replace("integers", "randint")
    text = f"""
    def f(rng, xs, k, out):
        for i in range(50):
            {body.replace(chr(10), chr(10) + "    ")}
        return out
    """
    rs = np.random.RandomState(2)
    xs, k = rs.rand(50) + 0.5, rs.randint(1, 50, size=50)
    served = kind == "PCG64" or not any(name in body for name in ("beta", "binomial", "gamma", "geometric"))
    agree(text, KINDS[kind], xs, k, np.zeros(50), served=served)
    exec(fault, {"xs": xs, "k": k, "np": np})
    agree(text, KINDS[kind], xs, k, np.zeros(50), served=None)  # perhaps as runs of statements


def test_floating_point_warnings() -> None:
    """Where a warning is shown, Python draws again, from the state before."""
    text = """
        def f(rng, xs, out):
            with np.errstate(all="raise"):
                try:
                    for i in range(50):
                        out[i] = rng.random() / xs[i]
                except FloatingPointError:
                    return i, rng.random()
            return rng.random()
    """
    xs = np.ones(50)
    agree(text, np.random.default_rng, xs, np.zeros(50))
    xs[25] = 0.0
    agree(text, np.random.default_rng, xs, np.zeros(50), served=None)


def test_others_are_left_to_python() -> None:
    class Mine(np.random.Generator):
        def random(self, *args: Any) -> float:  # type: ignore[override]
            return 0.25

    text = """
        def f(rng, out):
            for i in range(50):
                out[i] = rng.random()
    """
    agree(text, lambda seed: Mine(np.random.PCG64(seed)), np.zeros(50), served=False)
    agree(text, lambda seed: np.random.Generator(np.random.Philox(seed)), np.zeros(50), served=False)


def test_a_function_of_numpy_bound_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written(
        "import numpy as np\ndef f(out):\n    for i in range(50):\n        out[i] = np.random.rand()\n"
    )
    g, out = dc.accelerate(f), np.zeros(50)
    g(out)
    assert dc.report().loops == 1
    monkeypatch.setattr(np.random, "rand", lambda: 0.5)
    g(out)
    assert (out == 0.5).all() and dc.report().loops == 1


def test_another_bit_generator_of_numpy() -> None:
    f = written(
        "import numpy as np\ndef f(out):\n    for i in range(50):\n        out[i] = np.random.rand()\n"
    )
    g, out, expected = dc.accelerate(f), np.zeros(50), np.zeros(50)
    before = np.random.get_bit_generator()  # type: ignore[attr-defined]
    g(out)
    try:
        for seed in range(2):
            np.random.set_bit_generator(np.random.PCG64(seed))  # type: ignore[attr-defined]
            g(out)
            np.random.set_bit_generator(np.random.PCG64(seed))  # type: ignore[attr-defined]
            f(expected)
            assert out.tobytes() == expected.tobytes()
    finally:
        np.random.set_bit_generator(before)  # type: ignore[attr-defined]
    np.random.seed(3)
    g(out)
    np.random.seed(3)
    f(expected)
    assert out.tobytes() == expected.tobytes()


def test_the_lock_of_another_thread() -> None:
    """While another thread has a generator's lock, compiled code does not draw from it."""
    rng = np.random.default_rng(1)
    having, done = threading.Event(), threading.Event()

    def hold() -> None:
        with rng.bit_generator.lock:
            having.set()
            done.wait(10)

    locks = [generators.acquired([rng]) for _ in range(2)]  # which this thread may have twice
    for held in locks:
        assert held is not None
        generators.released(held)
    other = threading.Thread(target=hold)
    other.start()
    having.wait(10)
    assert generators.acquired([np.random.default_rng(2), rng]) is None
    done.set()
    other.join()
    again = generators.acquired([rng])
    assert again is not None
    generators.released(again)


def test_symbols_of_sizes_and_bounds() -> None:
    """Sizes and bounds that change from call to call."""
    f = written("""
        import numpy as np
        def f(rng, n, out):
            for i in range(n):
                out[i % 20] += rng.integers(i, n + i) + rng.normal(size=n)[i]
            return out
    """)
    g = dc.accelerate(f)
    for n in (3, 5, 9, 12, 17):
        found = []
        for h in (f, g):
            rng = np.random.default_rng(n)
            found.append((h(rng, n, np.zeros(20)).tobytes(), state_of(rng)))
        assert found[0] == found[1]


STATEMENTS = [
    "x = {rng}.random()", "x = x + {rng}.normal(y, 0.5)", "y = {rng}.uniform(-1.0, 2.0)", "y = y * 0.5 + x",
    "k = int({rng}.{int}(0, 20))", "out[k] = out[k] + x", "out[i % 20] = {rng}.standard_normal()",
    "x = out[{rng}.{int}(0, 20)]", "a = {rng}.normal(size=4)",
    "out[:4] = out[:4] + {rng}.uniform(0.0, y * y, 4)",
    "x = x + {rng}.standard_normal((2, 2))[1, 0]", "y = {rng}.exponential(2.0)",
    "x = {py}.random()", "k = {py}.randint(0, 19)", "out[{py}.randrange(20)] = x",
    "y = {py}.uniform(-1.0, 2.0)", "x = x + {py}.gauss(y, 0.5)", "y = {py}.choice(out)",
    "k = {py}.choice((1, 3, 4))", "k = {py}.getrandbits(4)", "x = {py}.normalvariate(0.0, 2.0)",
]  # fmt: skip


def _program(source: random.Random) -> str:
    """The text of a random program that draws."""

    def block(depth: int, count: int, indent: str) -> list[str]:
        lines = []
        for _ in range(count):
            rng = source.choice(["rng", "rs", "np.random"])
            method, py = "integers" if rng == "rng" else "randint", source.choice(["py", "random"])
            kind = source.random()
            if depth and kind < 0.15:
                drawn = f"y < 0.1 and {source.choice([rng, py])}.random() < 0.6"
                lines.append(f"{indent}if {source.choice(['x > 0.4', drawn])}:")
                lines += block(depth - 1, source.randint(1, 3), indent + "    ")
            elif depth and kind < 0.25:
                lines.append(f"{indent}for j{depth} in range({source.randint(0, 3)}):")
                lines += block(depth - 1, source.randint(1, 3), indent + "    ")
            else:
                lines.append(indent + source.choice(STATEMENTS).format(rng=rng, int=method, py=py))
        return lines

    body = block(2, source.randint(2, 6), " " * 8)
    head = ["def f(rng, rs, py, out):", "    x, y, k = 0.5, 0.25, 3", "    for i in range(15):"]
    return "\n".join([*head, *body, "    return x, y"])


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    kinds = np.random.default_rng, np.random.RandomState, random.Random
    agree(_program(random.Random(seed)), *kinds, np.zeros(20), served=None)
