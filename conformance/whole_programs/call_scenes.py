"""Scenes (parts of random programs) with calls: generators, recursion, arguments, contexts, globals."""

from __future__ import annotations

from .scenes import Scene, arrays_made, called
from .statements import Lines, Writer, indented

__all__ = ["CALL_SCENES"]


def generators(w: Writer, s: int) -> Lines:
    """Write a generator and its caller that work on the same array."""
    n, dtype = w.length(), w.dtype()
    body = w.run(["x", "y"], 1, 2)
    w.put_in(body, f"yield {w.pick(['x', 'k', 'x[:1]', w.read('x')])}")
    kernel = [
        f"def gives{s}(x, y, n):",
        *indented([*w.run(["y"], 0, 1), "for k in range(n):", *indented(body)]),
    ]
    take = [*w.statement(["x", "y"]), *w.bounds(["x"])[:1]]
    if w.chance(0.5):
        take.append(f"LOG.append({w.read('x')})")
    if w.chance(0.3):
        take.append("if len(LOG) % 3 == 2: break")
    user = [
        f"def taker{s}(x, y, n):",
        *indented([f"for value in gives{s}(x, y, n):", *indented(take), "return x"]),
    ]
    whole = [f"shown('{s} list', lambda: list(map(digest, gives{s}(x, y, 3))))"] if w.chance(0.5) else []
    scene = [
        *arrays_made(w, "xy", n, dtype),
        *called(w, f"taker{s}, x, y, 4", f"{s} gives", "xy"),
        *whole,
        "show('x', x, y)",
    ]
    return [*kernel, "", "", *user, "", "", f"def scene{s}():", *indented(scene)]


def recursion(w: Writer, s: int) -> Lines:
    """Write a function that calls itself with the same array or a part of it."""
    n, dtype = w.length(), w.dtype()
    part = w.pick(
        ["x[1:], y[1:]", "x, y", "y, x", "x[::-1], y", "x[: len(x) // 2], y[len(y) - len(x) // 2:]"]
    )
    lines = [
        "if depth == 0 or len(x) < 2: return 0",
        *w.run(["x", "y"], 1, 3),
        f"found = again{s}({part}, depth - 1)",
        *w.run(["x"], 0, 2),
        f"LOG.append({w.read('y')})",
        "return found + depth",
    ]
    scene = [
        *arrays_made(w, "xy", n, dtype),
        *called(w, f"again{s}, x, y, {w.between(2, 5)}", f"{s} again", "xy", w.pick([3, 40])),
    ]
    return [f"def again{s}(x, y, depth):", *indented(lines), "", "", f"def scene{s}():", *indented(scene)]


def arguments(w: Writer, s: int) -> Lines:
    """Write functions with variable arguments, keywords, arrays as defaults, and comprehensions."""
    n, dtype = w.length(), w.dtype()
    comp = w.pick(
        [
            "[a.copy() for a in arrays]",
            "[float(a[0]) for a in arrays]",
            "{k: a[:2].tolist() for k, a in enumerate(arrays)}",
            "[a.__iadd__(1)[0] for a in arrays]",
            "list(map(lambda a: a[-1], arrays))",
            "[k for k in range(3) if arrays[0][0] > k]",
        ]
    )
    lines = [
        "x, *others = arrays",
        "y = others[0]",
        *w.block(["x", "y", "store"], "n"),
        *w.statement(["x"]),
        f"found = {comp}",
        "rest['z'][:1] += scale" if w.chance(0.5) else "x *= scale",
        *w.bounds("x"),
        "return found",
    ]
    head = f"def many{s}(*arrays, n=3, scale=2, store=np.zeros({n}, {dtype!r}), **rest):"
    third = w.pick(["a", "b", "a[::-1]", "b[:]"])
    given, more = w.pick(["a, b", "a, a", "b, a, a"]), w.pick(["", ", n=2", ", scale=3", ", store=a"])
    call = f"many{s}, *({given},), z={third}{more}"
    scene = [*arrays_made(w, "ab", n, dtype), *called(w, call, f"{s} many", "ab")]
    return [head, *indented(lines), "", "", f"def scene{s}():", *indented(scene)]


def contexts(w: Writer, s: int) -> Lines:
    """Write a context manager and closures that work on arrays of a function."""
    n, dtype = w.length(), w.dtype()
    cls = [
        f"class Lock{s}:",
        *indented(
            [
                "def __init__(self, a):",
                *indented(["self.a = a"]),
                "",
                "def __enter__(self):",
                *indented([w.write("self.a"), "return self.a"]),
                "",
                "def __exit__(self, *error):",
                *indented([w.write("self.a"), f"LOG.append({w.read('self.a')})"]),
            ]
        ),
    ]
    inside = w.run(["x", "y", "v"], 1, 3)
    nested = [
        "def bump():",
        *indented(["nonlocal total", *w.statement(["y[:]"]), f"total += {w.pick(['1', 'len(y)'])}"]),
    ]
    w.put_in(inside, "bump()")
    lines = [
        "total = 0",
        *nested,
        *w.run(["x"], 1, 2),
        f"with Lock{s}({w.pick(['x', 'y', 'x[::2]'])}) as held:",
        *indented(["v = x", *w.loop(inside, ["x"], "n"), w.write("held")]),
        *w.run(["x", "y"], 1, 2),
        "return total",
    ]
    kernel = [f"def locks{s}(x, y, n):", *indented(lines)]
    scene = [
        *arrays_made(w, "xy", n, dtype),
        *called(w, f"locks{s}, x, {w.pick(['y', 'x', 'x[::-1]'])}, 3", f"{s} locks", "xy"),
    ]
    return [*cls, "", "", *kernel, "", "", f"def scene{s}():", *indented(scene)]


def module_level(w: Writer, s: int) -> Lines:
    """Write global arrays, changed by functions without arguments and by the module's own lines."""
    n, dtype = w.length(), w.dtype()
    a, b = f"A{s}", f"B{s}"
    first = [
        f"{a} = {w.made(n, dtype)}",
        f"{b} = {w.pick([a, a + '[::-1]', w.made(n, dtype), a + '.copy()'])}",
    ]
    names = f"global {a}, {b}"
    one = [
        f"def first{s}():",
        *indented([names, *w.run([a, b], 1, 3), w.pick([f"second{s}()", "pass"]), f"return {a}"]),
    ]
    two = [f"def second{s}(n=3):", *indented([names, *w.block([a, b], "n"), f"return {w.read(a)}"])]
    top = [*w.run([a, b], 0, 2), "for _ in range(3):", *indented(w.run([a, b], 1, 2))]
    scene = [
        *called(w, f"first{s}", f"{s} first", [a, b]),
        *called(w, f"second{s}", f"{s} second", [a, b], 3),
    ]
    return [*first, "", "", *one, "", "", *two, "", "", *top, "", "", f"def scene{s}():", *indented(scene)]


CALL_SCENES: dict[str, Scene] = {
    f.__name__: f for f in (generators, recursion, arguments, contexts, module_level)
}
