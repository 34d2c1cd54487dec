"""Random numbers of each method of NumPy's generators in compiled loops."""

import re

import numpy as np
import pytest
from drawing import KINDS, agree

pytestmark = pytest.mark.eager(debug=True)

METHODS = {
    "Generator": """
        random(); standard_normal(); normal(); normal(0.3, 2.5); normal(scale=x, loc=-1); uniform()
        uniform(-1, 3.5); uniform(high=x + 2); integers(10); integers(3, 11); integers(0, 7, endpoint=True)
        integers(5, dtype=np.int64); integers(0, 1 << 40); integers(-5, i + 2); integers(0, 5, dtype=int)
        integers(0, 1); integers(0, 1 << 32); exponential(); exponential(x); standard_exponential()
        gamma(2.5); gamma(0.5, scale=x); standard_gamma(x); beta(0.4, 0.7); chisquare(3); laplace(0.5, x)
        logistic(); gumbel(scale=3.0); lognormal(0.1, 0.3); weibull(1.5); rayleigh(2); poisson()
        poisson(3.5); poisson(150 * x); pareto(2.5); power(x); standard_cauchy(); standard_t(4)
        wald(1.0, x); vonmises(0.0, 4 * x); triangular(-1, x, 2); geometric(0.4); geometric(0.1 * x)
        binomial(1, 0.3); binomial(i, x); binomial(1000, x); choice(7); choice([-1, 1])
        choice((0.5, 1.5, 2.5)); choice(out)
    """,
    "RandomState": """
        random(); random_sample(); rand(); randn(); standard_normal(); normal(); normal(0.3, 2.5)
        normal(loc=x); uniform(); uniform(-1, x); uniform(3, -2); randint(10); randint(3, 11)
        randint(0, 7, dtype=np.int64); randint(-5, i + 2); randint(0, 1 << 40); randint(0, 1 << 32)
        randint(0, 1); exponential(); exponential(x); standard_exponential(); laplace(0.5, x); logistic()
        gumbel(scale=3.0); lognormal(0.1, 0.3); poisson(); poisson(3.5); poisson(150 * x)
        triangular(-1, x, 2); choice(i + 2); choice([-1, 1]); choice((0.5, x))
    """,
}


def _calls(of: str) -> list[str]:
    return [call.strip() for call in re.split("[;\n]", METHODS[of].strip())]


def _together(calls: list[str], of: str) -> list[str]:
    """Loops that draw a number of each of several methods."""
    made = []
    for first in range(0, len(calls), 4):
        some = calls[first : first + 4]
        lines = [f"v{k} = {of}.{call}; out[i] = out[i] * 0.5 + v{k}" for k, call in enumerate(some)]
        kept = ", ".join(f"v{k}" for k in range(len(some)))
        body = "".join(f"        {line}\n" for line in lines)
        made.append(
            f"    {' = '.join(kept.split(', '))} = None\n    for i in range(40):\n{body}    return {kept}"
        )
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_one_number(kind: str) -> None:
    """Each method draws what it draws in Python, given scalars."""
    for loop in _together(_calls(kind if kind == "RandomState" else "Generator"), "rng"):
        agree(f"def f(rng, out, x):\n{loop}", KINDS[kind], np.zeros(40), 0.7, seeds=1)


@pytest.mark.parametrize("kind", ["PCG64", "RandomState"])
def test_arrays(kind: str) -> None:
    """Each method fills arrays as in Python."""
    for call in _calls(kind if kind == "RandomState" else "Generator"):
        name, _, rest = call.partition("(")
        plain = name in ("rand", "randn")
        shapes = {"a": "5", "b": "(2, 3)"} if plain else {"a": "5", "b": "(2, 3)", "c": "n"}
        totals = "".join(f"    s{v} = np.zeros({shape})\n" for v, shape in shapes.items())
        lines = ""
        for v, shape in shapes.items():
            size = shape.strip("()") if plain else f"size={shape}"
            given = ", ".join(filter(None, [rest[:-1], size]))
            lines += f"        {v} = rng.{name}({given})\n        s{v} = s{v} + {v}\n"
        found = ", ".join(f"{v}, s{v}" for v in shapes)
        text = f"def f(rng, x, n, out):\n{totals}    for i in range(7):\n{lines}    return {found}"
        agree(text, KINDS[kind], 0.7, 3, np.arange(5.0), seeds=1)


def test_functions_of_numpy() -> None:
    for loop in _together(_calls("RandomState"), "np.random"):
        text = f"def f(out, x):\n{loop}".replace("    return ", "    return np.random.rand(3), ")
        agree(text, np.zeros(40), 0.7, seeds=1)


@pytest.mark.parametrize("kind", ["PCG64", "RandomState"])
def test_choices_with_probabilities(kind: str) -> None:
    """A Markov chain, and choices of items; probabilities that are none are left to Python."""
    chain = """
        def f(rng, p, out):
            state = 0
            for i in range(100):
                state = rng.choice(4, p=p[state])
                out[i] = state + rng.random()
            return state
    """
    p = np.random.RandomState(1).rand(4, 4)
    p /= p.sum(axis=1, keepdims=True)
    agree(chain, KINDS[kind], p, np.zeros(100))
    items = """
        def f(rng, xs, out):
            for i in range(100):
                out[i] = rng.choice(xs, p=[0.25, 0.5, 0.0, 0.25])
                out[i] += rng.choice([1, 2], p=(0.3, 0.7))
    """
    agree(items, KINDS[kind], np.arange(4.0), np.zeros(100))
    for fault in (-0.1, np.nan, 0.5):
        wrong = p.copy()
        wrong[2, 1] = fault
        agree(chain, KINDS[kind], wrong, np.zeros(100), served=None)


@pytest.mark.parametrize("kind", ["PCG64", "RandomState"])
def test_parameters_that_are_arrays(kind: str) -> None:
    calls = [
        "normal(a)", "normal(0.5, a)", "normal(loc=a, scale=a + 1)", "normal(a, b[:, None])",
        "normal(a, 1.0, 4)",
        "normal(a, size=(3, 4))", "uniform(a, a + 1.0)", "uniform(0.0, b)", "poisson(a * 20)",
        "exponential(a + b[1])",
        "lognormal(a, 0.5)", "normal(a[:1], size=5)", "triangular(-1.0, a, 2.0)", "normal(a * 2 - 1, x)",
    ]  # fmt: skip
    if kind == "PCG64":
        calls += ["gamma(a, 2.0)", "beta(a, a)", "binomial(10, a)", "geometric(a)", "wald(a, a)"]
    for call in calls:
        agree(
            f"""
            def f(rng, a, b, x):
                for i in range(5):
                    made = rng.{call}
                    a = a * 0.9 + 0.05 * rng.random()
                return made, a
            """,
            KINDS[kind], np.linspace(0.1, 0.9, 4), np.linspace(0.2, 1.0, 3), 0.7, seeds=1,
        )  # fmt: skip
