"""Dictionaries that loops look up and go through: compiled, with Python's values and errors."""

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager(eager_below=0)

TABLES = """
MOVES = {0: (0, 1), 1: (1, 0), 2: (0, -1), -7: (-1, 0)}
COST = {"A": 1.5, "C": 2.5, "G": 0.25}
NAMED = {"dt": 0.5, "n": 3, "on": True}
def add(a, b): return a + b
def half(a, b): return a * 0.5
OPS = {"add": add, "half": half}
def moved(k, r, c):
    dr, dc = MOVES[k]
    return r + dr, c + dc
def around(x, i):
    return sum(x[(i + dr + dc) % len(x)] for dr, dc in MOVES.values())
class Walker:
    def __init__(self):
        self.moves, self.at = dict(MOVES), (0, 0)
    def step(self, k):
        self.at = (self.at[0] + self.moves[k][0], self.at[1] + self.moves[k][1])
"""
BODIES = {
    "lookups": """
        r = c = 0
        for k in steps:
            dr, dc = MOVES[k]
            r, c = r + dr, c + 2 * dc
        return r, c
    """,
    "lookups in a function": """
        r = c = t = 0
        for k in steps:
            r, c = moved(k, r, c)
            t += 3 * r - c
        return t
    """,
    "iteration": """
        t = 0.0
        for i in range(len(x)):
            for key, (dr, dc) in MOVES.items():
                t += key * x[i] * dr - dc
            for key in COST:
                t += COST[key]
            for key in MOVES.keys():
                t += key
            t += around(x, i)
        return t
    """,
    "characters": """
        t = 0.0
        for ch in text:
            t += COST[ch] if ch in COST else -1.0
            t += COST.get(ch, 0.125)
        return t
    """,
    "other ways": """
        n = len(MOVES)
        for k in steps:
            n += len(COST.values()) if k in MOVES and k + 1 not in MOVES else 1
        return n
    """,
    "known keys": """
        t = 0.0
        for i in range(len(x)):
            for name in ("add", "half"):
                t += OPS[name](x[i], NAMED["dt"]) if NAMED["on"] else NAMED["n"]
        return t
    """,
    "an object's": """
        w = Walker()
        for k in steps:
            w.step(k)
        return w.at
    """,
}
STEPS, TEXT = [0, 1, 2, -7, 1, 1, 2, 0, -7] * 5, "ACGGNACCGTACGGNACCGT"


def both(body: str) -> list[Callable[..., Any]]:
    """Return a function as it is, and a copy that is accelerated, with other global names."""
    text = f"{TABLES}def f(steps, x, text):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    plain, other = written(text), written(text)
    return [plain, dc.accelerate(other)]


@pytest.mark.parametrize("name", [*BODIES])
def test_loops_that_look_up_dictionaries_are_compiled(name: str) -> None:
    f, g = both(BODIES[name])
    x = [0.5, -1.25, 3.0]
    assert [g(STEPS, x, TEXT) for _ in range(3)] == [f(STEPS, x, TEXT)] * 3
    assert dc.report().loops and not [one for one in dc.report().fallbacks if one.kind == "loop"]


@pytest.mark.parametrize("change", [
    "MOVES[0] = (5, 5)", "MOVES[3] = (1, 1); steps.append(3)", "MOVES[0] = (0.5, 1)", "MOVES[1] = (True, 0)",
    "del MOVES[-7]", "MOVES.clear()", "COST['A'] = 7.0", "COST['N'] = 3", "COST.update(N=1.0, A=2)",
    "MOVES[2] = [0, 1]", "MOVES[True] = (2, 2)", "MOVES[1.0] = (4, 4)", "COST['GG'] = 1.0",
])  # fmt: skip
def test_changes_of_dictionaries_are_seen(change: str) -> None:
    results = []
    for f in both("\n".join([
        "def run():", "    r = c = 0", "    t = 0.0",
        "    for k in steps:", "        dr, dc = MOVES[k]", "        r, c = r + dr, c + dc",
        "    for ch in text:", "        if ch in COST:", "            t += COST[ch]",
        "    return r, c, t", "out = []",
        "for k in range(4):", "    try: out.append(run())",
        "    except (KeyError, TypeError) as error: out.append(repr(error))",
        f"    if k == 1: {change}", "return out",
    ])):  # fmt: skip
        results.append(repr(f([*STEPS], [], TEXT)))
    assert results[0] == results[1]


def test_a_missing_key_is_pythons_error_and_undoes_nothing_else() -> None:
    for f in both("""
        for i in range(len(steps)):
            x[i] = x[i] + MOVES[steps[i]][0]
    """):
        x = [0.0] * 5
        with pytest.raises(KeyError, match="99"):
            f([1, 1, -7, 99, 1], x, "")
        assert x == [1.0, 1.0, -1.0, 0.0, 0.0]


@pytest.mark.parametrize("body", [
    "for k in steps: NAMED['n'] = NAMED['n'] + k; x[0] += NAMED[('n', 'dt')[k > 0]]\nreturn NAMED, x",
    "for k in steps: MOVES[k] = (k, MOVES[k][0])\nreturn MOVES",
    "counts = {}\nfor k in steps: counts[k] = counts.get(k, 0) + 1\nreturn counts",
    "t = 0\nfor k in steps: t += len(MOVES.popitem()) if len(MOVES) > 2 else 1\nreturn t, MOVES",
    "also = NAMED\nfor k in steps: also['n'] = NAMED['n'] + 1; x[1] += NAMED['n']\nreturn NAMED, x",
    "for k in steps: x[0] = x[0] + globals()['COST']['A']; x[1] += COST['AC'[k > 0]]\nreturn x",
    "w = Walker()\nfor k in steps: w.at = (k, vars(w)['at'][0])\nreturn w.at",
    "out = []\nfor k in steps: out.append([*MOVES.items()][0])\nreturn out",
    "try: return [MOVES.values()[0] for k in steps]\nexcept TypeError as error: return str(error)",
])  # fmt: skip
def test_other_uses_of_dictionaries_are_pythons(body: str) -> None:
    f, g = both(body)
    for _ in range(3):
        assert repr(g(STEPS, [1.0, 2.0], TEXT)) == repr(f(STEPS, [1.0, 2.0], TEXT))
