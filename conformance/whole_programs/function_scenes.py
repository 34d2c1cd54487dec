"""Scenes with functions that read and bind global names and variables of enclosing functions."""

from __future__ import annotations

import re

from .scenes import Scene, called
from .statements import Lines, Writer, indented

__all__ = ["FUNCTION_SCENES"]

# T, C and U are a float, an int and an array; the others are functions.  K is a loop's variable.
_CALLS = [
    "s += read(K)", "s = s * 0.5 + read(K + 1)", "tick(s + K)", "s += tick(K)", "s = 2 - tick(K) * 3",
    "s += C", "s -= T * 0.25", "moved(0.5)", "s += moved(0.25)", "put(K)", "s += both(K)",
    "if tick(K) % 2 == 0: s += 1", "if K % 3 == 1: tick(K)", "s += scaled(s)", "s += applied(read, K)",
    "s += applied(scaled, K)", "s += early(K)", "s += U[K % len(U)]", "s += law(K)", "s += deep(K)",
    "s -= deeper(K)", "s += deeper(s)",
]  # fmt: skip
_BINDS = ["T += 0.125", "C += 1", "U[K % len(U)] += 1", "T = s * 0.5", "U = U * 0.5", "C = K", "T, C = C, K"]
_HELPERS = {
    "read": "def read(k): return U[k % len(U)] * T",
    "tick": "def tick(v):\n    DECLARE C\n    if v % 3 < 1: C += 1\n    return C",
    "moved": "def moved(by):\n    DECLARE T, U\n    T = T * 0.5 + by\n    U = U + by\n    return T",
    "put": "def put(k):\n    U[(k + 1) % len(U)] = U[k % len(U)] * 0.5 + C",
    "both": "def both(k):\n    tick(k)\n    return read(k) + C",
    "scaled": "scaled = lambda v, by=3: v % 7 * T + by",
    "applied": "def applied(g, v):\n    '''Calls\n\n    a function.'''\n    return g(v) + g(v + 1)",
    "law": "def law(k, by=2): return k * by + C",
    "deep": "def deep(k): return law(k) * 0.5",
    "deeper": "def deeper(k): return deep(k + 1) + 1",
    "early": "def early(k):\n    DECLARE C\n    if k % 2: return T\n    C += 2\n    return C * 0.5",
}
_MARKED = ("T", "C", "U", *_HELPERS)


def _body(w: Writer, binds: bool) -> Lines:
    """Write a loop that calls some of the functions."""
    lines = [w.pick(_CALLS) for _ in range(w.between(1, 4))]
    if binds:
        lines.insert(w.between(0, len(lines)), w.pick(_BINDS))
    lines = [line.replace("K", "k") for line in lines]
    loop = [f"for k in range({w.pick(['n', '9', 'len(U)'])}):", *indented([*lines, "s %= 61"])]
    if w.chance(0.2):
        loop = ["for j in range(2):", *indented(loop)]
    return loop


def _helpers(declare: str) -> Lines:
    found: Lines = []
    for text in _HELPERS.values():
        found += text.replace("DECLARE", declare).split("\n")
    return found


def _own(lines: Lines, s: int) -> Lines:
    """Return lines with global names made unique for a scene."""
    pattern = rf"\b({'|'.join(_MARKED)})\b"
    return [re.sub(pattern, rf"\g<1>{s}_", line) for line in lines]


def global_names(w: Writer, s: int) -> Lines:
    """Write functions that read and bind global names, called by loops of the module and a function."""
    made = ["T, C = 1.5, 2", f"U = {w.made(w.pick([1, 3, 30, 300]), w.pick(['f8', 'f8', 'i8', 'f4']))}"]
    first, second, third = _body(w, True), _body(w, False), _body(w, True)
    loops = ["s, n = 0.0, 5", "for again in range(4):", *indented([*first, "U %= 61", "C %= 61", "T %= 61"])]
    shows = ["show('module', s, T, C, U)"]
    inner = ["s = 0.0", *second, "return s"]
    writer = ["global T, C, U", "s = 0.0", *third, "U %= 61", "C %= 61", "T %= 61", "return s"]
    change = w.pick([
        "global T; T = 3", "global U; U = U.astype('f4') * 2", "global C; C = np.int64(7)", "global C; C = 9",
        "global read; read = lambda k: T + k", "global tick; tick = scaled", "global U; U = U.tolist()",
        "global U; U = np.zeros((2, 2)) + T", "global C; del C", "pass", "law.__defaults__ = (3,)",
        "law.__code__ = (lambda k, by: k - by).__code__", "global law; law = lambda k, by=5: k + by",
    ])  # fmt: skip
    scene = [
        *called(w, "inner, 9", f"{s} inner", ["T", "C", "U"]),
        *called(w, "writer, 5", f"{s} writer", ["T", "C", "U"]),
        "changed()",
        "shown('changed', inner, 7)",
        "shown('changed', writer, 7)",
    ]
    lines = [
        *made, "", "", *_helpers("global"), "", "", "def inner(n):", *indented(inner), "", "",
        "def writer(n):", *indented(writer), "", "", "def changed():", *indented([change]), "", "",
        *loops, *shows, "", "", f"def scene{s}():", *indented(scene),
    ]  # fmt: skip
    found = _own(lines, s)
    for name in ("inner", "writer", "changed"):
        found = [line.replace(f"{name}(", f"{name}{s}(").replace(f"{name},", f"{name}{s},") for line in found]
    return found


def closures(w: Writer, s: int) -> Lines:
    """Write nested functions that read and bind variables of the enclosing function."""
    body, other = _body(w, False), _body(w, False)
    after = w.pick(["", "T = 2.5", "C = C + 1", "U = U * 2", "scaled = read", "del C"])
    inside = [
        "T, C, s = 1.5, 2, 0.0",
        *_helpers("nonlocal"),
        *body,
        *[after] * bool(after),
        *(other if w.chance(0.5) else []),
        "return s, T, U",
    ]
    made = w.made(w.pick([1, 3, 30, 300]), w.pick(["f8", "f8", "i8"]))
    kept = [
        f"def made{s}(T, C, U):",
        *indented([*_helpers("nonlocal"), f"return {w.pick(['read', 'tick', 'both', 'early', 'scaled'])}"]),
        "",
        "",
        f"def run{s}(g, h, n):",
        *indented(["s = 0.0", "for k in range(n):", "    s = (s + g(k) - h(k)) % 61", "return s"]),
    ]
    scene = [
        f"U = {made}",
        *called(w, f"around{s}, U, 7", f"{s} around", ["U"]),
        f"g, h = made{s}(1.5, 2, U), made{s}({w.pick(['2', '0.5'])}, 3, {w.pick(['U', 'U[::-1]', 'U * 2'])})",
        *called(w, f"run{s}, g, {w.pick(['h', 'g'])}, 9", f"{s} run", ["U"]),
        f"shown('{s} other', run{s}, h, lambda k: k, 5)",
    ]
    return [
        f"def around{s}(U, n):", *indented(inside), "", "", *kept, "", "",
        f"def scene{s}():", *indented(scene),
    ]  # fmt: skip


_APPENDS = [
    "l.append(x[k % len(x)])",
    "l.append(k)",
    "m.append(t)",
    "m.append(k * 0.5)",
    "if x[k % len(x)] > 5: l.append(x[k % len(x)])",
    "if k % 3 == 0: m.append(t)",
    "if t > 20: m.append(t - 20)",
    "t = t * 0.5 + k",
    "x[k % len(x)] += 1",
    "if k == 17: break",
    "if t > 40: continue",
    "m.append(len(m))",
    "l.append(t / (k - 25))",
    "t += sum(v for v in x if v > 3)",
    "for j in range(3): l.append(j)",
]


def growing(w: Writer, s: int) -> Lines:
    """Write loops that append to lists."""
    lines = [w.pick(_APPENDS) for _ in range(w.between(1, 4))]
    body = [
        "t, m = 0.0, []",
        f"for k in range({w.pick(['n', '30', 'len(x)'])}):",
        *indented([*lines, "t %= 61"]),
        "return t, m, l[-30:], len(l)",
    ]
    made = w.made(w.pick([1, 3, 30]), w.pick(["f8", "f8", "i8", "f4"]))
    first = w.pick(["[]", "['a']", "[1.5]", "LOG"])
    scene = [
        f"x, l = {made}, {first}",
        *called(w, f"grows{s}, x, 20, l", f"{s} grows", ["x", "l[-30:]", "len(l)"], w.pick([3, 40])),
        f"shown('{s} none', grows{s}, x, 0, l)",
        f"shown('{s} other', grows{s}, x, 9, None)",
    ]
    return [f"def grows{s}(x, n, l):", *indented(body), "", "", f"def scene{s}():", *indented(scene)]


FUNCTION_SCENES: dict[str, Scene] = {"global_names": global_names, "closures": closures, "growing": growing}
