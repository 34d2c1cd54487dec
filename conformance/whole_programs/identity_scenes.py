"""Scenes in which programs see which object is which: cycles, shared lists, methods with effects, NaN."""

from __future__ import annotations

from .scenes import Scene, called
from .statements import Lines, Writer, indented

__all__ = ["IDENTITY_SCENES"]

_NODES = [
    "s += node[2]",
    "node[2] = s % 7",
    "if node[2] > 3: s -= 1",
    "node[0][2] += 1",
    "if node[0] is node: s += 5",
    "if node is root: s += 2",
    "t = (node[2], t[0]); s += t[1]",
    "s += len(node)",
    "s = max(s, node[2]) % 61",
]
# Methods of an object with the attributes a and b and the item d["x"]; r is bound before they change.
_EFFECTS = [
    "r = self.a < n\nif r:\n    self.a += 1\nreturn r",
    "r = self.a\nself.a = r + 1 if r < n else 0\nreturn r",
    "if self.a >= n:\n    return False\nself.a += 1\nreturn True",
    "self.b += self.a\nif self.b > n:\n    self.b = 0\n    return self.a\nself.a += 1\nreturn n",
    "r = self.d['x'] % 3\nif r:\n    self.d['x'] -= 1\nelse:\n    self.a += 1\nreturn r",
    "for k in range(n):\n    if self.a > k:\n        self.b = k\n        return k\nself.a += 1\nreturn -1",
]
_USES = [
    "if n and self.does(n): s += 1",
    "if self.a < n or self.does(2): s += self.a",
    "s += self.a + self.does(n)",
    "s += self.does(n) - self.a",
    "while self.does(n) and s < 50: s += 1",
    "s += 2 if 0 <= self.does(n) <= self.a else 1",
    "l[self.does(n) % 3] += self.does(2)",
    "self.b += self.does(n)",
    "s += max(self.does(n), self.b)",
    "s += self.does(n) * 2 if not self.does(1) else self.b",
    "while s < 50 and self and self.next: s += 1",
    "for j in range(len(self)): s += self.a + j",
]
_MEMBERS = [
    "if v in (0.25, special): s += 1",
    "if v not in other: s += 2",
    "l.append(v)",
    "l[k % len(l)] = v",
    "best = v",
    "best = NAN",
    "if v != v: best = special",
    "l.append(special)",
    "s += other.count(v)",
]


def _some(w: Writer, lines: list[str]) -> Lines:
    return [line for _ in range(w.between(1, 4)) for line in w.pick(lines).split("\n")]


def rings(w: Writer, s: int) -> Lines:
    """Write a walk through nodes that refer to each other, some of them to themselves."""
    body = [*_some(w, _NODES), f"node = node[{w.pick(['1', '0', '1 - k % 2'])}]"]
    walk = [
        "s, t, node = 0, (0, 1), root[1]",
        f"for k in range({w.pick(['5', '40', 'n'])}):",
        *indented(body),
    ]
    if w.chance(0.5):
        while_ = [*_some(w, ["s += node[2]", "s = s % 61"]), "node = node[1]"]
        walk += ["node = root[1]", "while node is not root:", *indented(while_)]
    build = [
        "root = []",
        "root[:] = [root, root, 0]",
        "for k in range(n):",
        *indented(["last = root[0]", "node = [last, root, k]", "last[1] = root[0] = node"]),
        *(["node[0] = node"] if w.chance(0.3) else []),
        f"row = [0] * 3; m = {w.pick(['[row, row]', '[row, [1, 2, 3], row]', '[row] * 4'])}",
        "for k in range(n):",
        *indented([w.pick(["m[k % len(m)][k % 3] += k", "m[0][1] = m[-1][0] + k", "row[2] += m[0][k % 3]"])]),
        f"return walk{s}(root, n), m, m[0] is m[-1], node[0] is node",
    ]
    return [
        f"def walk{s}(root, n):", *indented([*walk, "return s, t"]), "", "",
        f"def made{s}(n):", *indented(build), "", "",
        f"def scene{s}():", *indented(called(w, f"made{s}, 9", f"{s} ring", ["len(LOG)"], 3)),
    ]  # fmt: skip


def effects(w: Writer, s: int) -> Lines:
    """Write methods that change attributes, called in conditions and other expressions."""
    init = ["self.a, self.b, self.d = 0, 1, {'x': 4}"]
    calls = _some(w, _USES)
    if w.chance(0.7):
        calls = [f"for k in range({w.pick(['3', '12'])}):", *indented(calls)]
    methods = [
        *["def __init__(self):", *indented(init), ""],
        *["def does(self, n):", *indented(w.pick(_EFFECTS).split("\n")), ""],
        *["@property", "def next(self): self.b += 1; return self.b % 4", ""],
        *["def __len__(self): return self.next", ""],
        *["def use(self, n):", *indented(["s, l = 0, [0, 0, 0]", *calls, "return s, l"])],
    ]
    use = called(w, f"m.use, {w.between(1, 6)}", f"{s} effects", ["m.a, m.b, m.d"], 9)
    scene = [f"m = Model{s}()", *use]
    return [f"class Model{s}:", *indented(methods), "", "", f"def scene{s}():", *indented(scene)]


def members(w: Writer, s: int) -> Lines:
    """Write loops over lists of floats, some of them NaN, which containers find by identity."""
    body = [
        "s, l, best = 0, [0.5], values[0]",
        "for k, v in enumerate(values):",
        *indented([line.replace("NAN", f"NAN{s}") for line in _some(w, _MEMBERS)]),
        "return s, l.count(special), special in l, best in values, l == l[:], len(l)",
    ]
    made = [
        f"nan, other = NAN{s}, float('{w.pick(['nan', 'inf', '-0.0', '0.75'])}')",
        f"values = [{w.pick(['nan', 'other'])} if k % 3 == 0 else k % 4 / 4 for k in range(n)]",
        f"return kept{s}(values, {w.pick(['nan', 'other', 'values[0]', 'values[1]'])}, [nan, 0.5, other])",
    ]
    return [
        f"NAN{s} = float('nan')", "",
        f"def kept{s}(values, special, other):", *indented(body), "", "",
        f"def made{s}(n):", *indented(made), "", "",
        f"def scene{s}():", *indented(called(w, f"made{s}, 20", f"{s} members", ["len(LOG)"], 9)),
    ]  # fmt: skip


IDENTITY_SCENES: dict[str, Scene] = {f.__name__: f for f in (rings, effects, members)}
