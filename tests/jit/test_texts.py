"""Loops over the characters of strings: compiled, with Python's values, types and errors."""

import random
import textwrap
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.jit.loops.entry.texts import characters, looked_at

pytestmark = pytest.mark.eager(eager_below=0)

BODIES = {
    "an alignment": """
        score = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                same = 2 if a[i - 1] == b[j - 1] else -1
                score[i, j] = max(0, score[i - 1, j - 1] + same, score[i - 1, j] - 2, score[i, j - 1] - 2)
        return score.tolist()
    """,
    "counts": """
        n = gc = runs = other = 0
        for k in range(len(a)):
            if a[k] == "G" or a[k] in "Cé":
                gc += 1
            if k and a[k] != a[k - 1]:
                runs += 1
            if a[k] not in ("A", "T", "G"):
                other += 1
            n += a[k] == "AB"
        return n, gc, runs, other
    """,
    "iteration": """
        n = at = 0
        for x, y in zip(a, b):
            if x == y:
                n += 1
        for k, x in enumerate(b):
            if x == "T":
                at = k
        for x in a:
            n += x != "A"
        return n, at
    """,
    "types": """
        t = True
        for k in range(len(b)):
            t = a[0] == b[k]
        return t
    """,
    "from the end": """
        n = 0
        for k in range(len(a)):
            if a[-k] == b[len(b) - 1 - k % len(b)]:
                n += k
        return n
    """,
}


def of_body(body: str) -> Any:
    text = "import numpy as np\ndef f(a, b):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return written(text)


def forms(text: str) -> list[Any]:
    array = np.array(list(text))
    return [text, list(text), array, list(array), array[::-1].copy()]


@pytest.mark.parametrize("name", [*BODIES])
def test_loops_over_characters_are_compiled(name: str) -> None:
    source = random.Random(5)
    f = of_body(BODIES[name])
    g = dc.accelerate(f)
    for n in (16, 41):
        one, two = ("".join(source.choices("ACGTé\U0001f600", k=k)) for k in (n, 50))
        for a in forms(one):
            for b in forms(two):
                assert repr(f(a, b)) == repr(g(a, b))
    assert dc.report().loops and not [one for one in dc.report().fallbacks if one.kind == "loop"]


KEPT = {
    "beyond the end": ("n = 0\nfor k in range(len(a) + 1):\n    n += a[k] == 'A'\nreturn n", IndexError),
    "a character is returned": ("c = ''\nfor k in range(len(a)):\n    c = a[k]\nreturn c", None),
    "in order": ("n = 0\nfor k in range(len(a)):\n    n += a[k] < 'C'\nreturn n", None),
    "parts": ("n = 0\nfor k in range(len(a) - 1):\n    n += a[k:k + 2] == 'CG'\nreturn n", None),
    "the whole": ("n = 0\nfor k in range(len(a)):\n    n += (a[k] == 'A') + (a == b)\nreturn n", None),
    "calls": ("n = 0\nfor k in range(len(a)):\n    n += ord(a[k].lower())\nreturn n", None),
    "writing": ("for k in range(1, len(a)):\n    if a[k] == 'A':\n        a[k] = a[k - 1]\nreturn a", None),
}


@pytest.mark.parametrize("name", [*KEPT])
def test_all_else_runs_in_python(name: str) -> None:
    body, error = KEPT[name]
    f = of_body(body)
    g = dc.accelerate(f)
    text = "ACGTACGTTTACGGACGATA"
    for a in [text, [*text], np.array([*text])]:
        if name == "writing" and a is text:
            continue
        given = [(a if a is text else a.copy(), text) for _ in range(2)]
        if error:
            with pytest.raises(error):
                g(*given[0])
        elif not (name == "the whole" and isinstance(a, np.ndarray)):
            assert repr(f(*given[0])) == repr(g(*given[1]))


def test_arrays_of_characters_are_seen_as_they_are_now() -> None:
    f = of_body("n = 0\nfor k in range(len(a)):\n    n += a[k] == ''\nreturn n")
    g = dc.accelerate(f)
    a = np.array(["A", "", "C", ""])
    assert repr(f(a, 0)) == repr(g(a, 0))
    a[0] = ""
    assert repr(f(a, 0)) == repr(g(a, 0))
    swapped = a.astype(">U1")
    assert repr(f(swapped, 0)) == repr(g(swapped, 0))


def test_what_is_taken_for_characters() -> None:
    assert characters("short") is None and characters(["ab", "c"]) is None and characters([]) is None
    assert characters(20 * "a\0") is None and characters(np.array([["a"]])) is None
    assert characters("\ud800" * 20) is not None
    source = "for k in range(len(a)):\n    n += a[k] == b[k]\n    c = b\n    s = t[1:]"
    assert looked_at(source) == {"a"}
