"""Scenes with objects: numbers and arrays in attributes and dictionaries, and methods that use these."""

from __future__ import annotations

import re

from .scenes import Scene, called
from .statements import Lines, Writer, indented

__all__ = ["OBJECT_SCENES"]

# O is an object of the class, P another one, D a dictionary, K a loop's variable
_NUMBERS = [
    "O.t += O.dt * K",
    "O.t = max(O.t, P.rate) - K % 3",
    "P.rate += 1",
    "O.law.k = P.law.k + 1",
    "D['t'] = D['t'] + O.dt",
    "D['law'].k += 1",
    "O.last = K",
    "if O.t > 20: O.t -= 20",
    "O.t, P.t = P.t, O.t",
    "O.move(K)",
    "O.t = O.read(K)",
    "s = O.both(P, K)",
    "s = gap{s}(O, P)",
    "s += O.half",
    "O.t = O.half + gap{s}(P, O)",
    "O.law.turn(2)",
    "O.count = Thing{s}.start + K",
    "P.law = O.law",
    "s = D['law'].value(K)",
]
_ELEMENTS = [
    "O.u[K % len(O.u)] += O.dt",
    "O.u[K % 3] = O.read(K)",
    "O.u[K % len(O.u)] = P.v[K % len(P.v)] + O.law.value(K)",
    "P.v[0] += O.u[-1] - D['t']",
    "s += O.u[K % len(O.u)]",
    "O.put(K)",
    "D['u'][K % len(D['u'])] += 1",
]
_ARRAYS = [
    "O.u = O.u + P.rate",
    "O.u, O.v = O.v, O.u",
    "O.u[:] = O.v * O.dt",
    "O.u += P.v",
    "P.v = O.u",
    "O.u = np.minimum(O.u, 9) + D['t']",
    "D['u'] = O.u * 2",
    "s = O.u.sum() % 61",
    "O.swap()",
    "O.u = O.scaled(P.v)",
]


def objects(w: Writer, s: int) -> Lines:
    """Write loops and sequences of statements on attributes of objects, some of which are aliases."""
    n, dtype = w.pick([3, 5, 30, 500, 3000]), w.dtype()
    one, two, store = (w.pick(["a", "a", "self"]), w.pick(["b", "b", "a.other"]), w.pick(["d", f"STATE{s}"]))
    method = one == "self"
    if method:
        two = two.replace("a.other", "self.other")

    def filled(text: str) -> str:
        for mark, name in (("O", one), ("P", two), ("D", store), ("{s}", str(s))):
            text = re.sub(rf"(?<![\w.']){mark}(?!\w)" if len(mark) == 1 else re.escape(mark), name, text)
        return text

    def some(pool: list[str], low: int, high: int) -> Lines:
        return [filled(w.pick(pool)) for _ in range(w.between(low, high))]

    inner = [*some(_NUMBERS, 1, 3), *some(_ELEMENTS, 0, 3)]
    inner = [re.sub(r"\bK\b", "k", line) for line in inner]
    w.random.shuffle(inner)
    loop = [f"for k in range({w.pick(['n', '7', filled('O.n'), filled('len(O.u)')])}):", *indented(inner)]
    if w.chance(0.2):
        loop = ["for j in range(2):", *indented(loop)]
    flat = [re.sub(r"\bK\b", "3", line) for line in [*some(_ARRAYS, 1, 3), *some(_NUMBERS, 0, 2)]]
    body = ["s = 0", *w.pick([loop, flat, [*flat, *loop], [*loop, *flat]])]
    body += [filled("O.u %= 61"), filled("P.v %= 61"), filled("O.t %= 61"), f"{store}['t'] %= 61", "return s"]
    slots = w.chance(0.15)
    law = [
        f"class Law{s}:",
        *indented([
            *['__slots__ = ("k",)'] * slots,
            "def __init__(self, k): self.k = k",
            "def value(self, x): return self.k * x + 1",
            f"def turn(self, by): self.k = {w.pick(['self.k + by', '-self.k', 'by', 'self.value(by) % 7'])}",
        ]),
    ]  # fmt: skip
    half = w.pick(["return self.t / 2", "return self.t // 2", "return self.law.k", "LOG.append(1); return 1"])
    move = w.pick(
        [
            "self.t += by",
            "self.t = by; self.law.turn(by)",
            "self.t += by; return self.t",
            "self.rate -= by % 2",
        ]
    )
    thing = [
        f"class Thing{s}:",
        *indented([
            "start = 2",
            "def __init__(self, u, v, other, law):",
            *indented([
                "self.u, self.v, self.other, self.law = u, v, other, law",
                f"self.t, self.dt, self.rate, self.n = 1, {w.pick(['2', '3', '0.5'])}, 2, {w.between(2, 9)}",
            ]),
            "@property",
            f"def half(self): {half}",
            f"def move(self, by): {move}",
            "def read(self, k): return self.u[k % len(self.u)] + self.law.value(self.rate)",
            "def put(self, k): self.v[k % len(self.v)] = self.t",
            "def both(self, other, k): return self.read(k) - other.read(k + 1)",
            "def swap(self): self.u, self.v = self.v, self.u",
            "def scaled(self, x, by=2): return x * by + self.rate",
            *(["def run(self, b, d, n):", *indented(body)] if method else []),
        ]),
    ]  # fmt: skip
    gap = [f"def gap{s}(a, b): return a.t - b.rate + {w.pick(['0', f'STATE{s}[0]', 'a.read(1)'])}"]
    kernel = [] if method else ["", "", f"def uses{s}(a, b, d, n):", *indented(body)]
    u, v = w.made(n, dtype), w.made(n, dtype)
    other = w.pick(["x", "x", "None"])
    made = [
        f"law = Law{s}(3)",
        f"x = Thing{s}({u}, {v}, None, law)",
        f"y = Thing{s}({w.pick([u, 'x.u', 'x.v[::-1]'])}, {v}, {other}, {w.pick(['law', f'Law{s}(2)'])})",
        f"x.other = {w.pick(['y', 'x', 'y'])}",
        f"STATE{s}.update({{'t': 1, 'law': y.law, 'u': y.u, 0: 4}})",
    ]
    a, b = w.pick([("x", "y"), ("x", "y"), ("x", "x"), ("y", "x")])
    d = w.pick([f"STATE{s}", "dict(t=2, law=law, u=x.v)", "vars(x)"])
    name = f"{a}.run" if method else f"uses{s}, {a}"
    call = f"{name}, {b}, {d}, {w.pick(['3', '20', '100'])}"
    seen = [f"{one}.{part}" for one in "xy" for part in ("u", "v", "t", "rate", "law.k")]
    change = w.pick([
        f"Thing{s}.move = lambda self, by: LOG.append(by)", f"Law{s}.value = lambda self, x: x + 1",
        f"Thing{s}.t = property(lambda self: 5)", "x.read = lambda k: 2", "x.t, y.t = 2.5, np.float64(3)",
        "x.u = x.u.tolist()", "del x.t", f"STATE{s}['t'] = 7.5", f"Thing{s}.start = 2.5",
        "x.rate = np.int64(3)", "law.k = np.ones(3)", "pass",
    ])  # fmt: skip
    if hidden := w.pick(["", "", "", "read", "move"]):  # a function of the object, and then that of its class
        made, change = [*made, f"x.{hidden} = lambda k: k + 2"], f"del x.{hidden}"
    scene = [
        *made,
        *called(w, call, f"{s} objects", seen),
        change,
        f"shown('{s} changed', {call})",
        "show('x', sorted(k for k in vars(x)), sorted(vars(y)))",
        *called(w, call, f"{s} again", [f"vars({one}).get({part!r})" for one in "xy" for part in ("u", "t")]),
    ]
    return [
        f"STATE{s} = {{}}", "", "", *law, "", "", *thing, "", "", *gap, *kernel,
        "", "", f"def scene{s}():", *indented(scene),
    ]  # fmt: skip


OBJECT_SCENES: dict[str, Scene] = {"objects": objects}
