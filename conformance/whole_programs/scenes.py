"""Scenes: parts of a random program, here with arrays that have several names or owners."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .statements import Lines, Writer, indented

__all__ = ["SCENES", "Scene", "arrays_made", "called"]

# Takes the writer and a number that makes its names its own; gives the lines of the module, of which
# the function `scene<number>` is called by the program.
Scene = Callable[[Writer, int], Lines]


def arrays_made(w: Writer, names: str, n: int, dtype: str) -> Lines:
    """Write the creation of arrays of one length; some may be aliases or views of others."""
    lines = []
    for k, name in enumerate(names):
        text = w.made(n, dtype)
        if k and w.chance(0.25):
            text = w.pick(["{0}", "{0}[::-1]", "np.asarray({0})", "{0}.view()", "{0}.reshape(-1)"]).format(
                names[0]
            )
        elif w.chance(0.1):
            text = f"np.repeat({text}, 2)[::2]"
        lines.append(f"{name} = {text}")
    return lines


def called(w: Writer, call: str, tag: str, arrays: Sequence[str], times: int | None = None) -> Lines:
    """Write a call that is repeated, before and after its code is compiled, and prints its arrays."""
    times = times or w.pick([3, 40, 300])
    again = w.pick([1, 2, 5])
    shows = [f"show({tag!r}, {', '.join(arrays)}, LOG[-6:])"]
    return [
        f"shown({tag!r}, {call})",
        *shows,
        f"for _ in hot({times}):",
        *indented([_bare(call)]),
        *shows,
        "settle()",
        f"for _ in range({again}):",
        *indented([f"shown({tag!r}, {call})"]),
        *shows,
    ]


def _bare(call: str) -> str:
    return f"quiet({call})"


def _count(w: Writer) -> str:
    return w.pick(["2", "3", "7", "20"])


# ---- the same array under another name -----------------------------------------------------------------
def callback(w: Writer, s: int) -> Lines:
    """Write a loop that calls a callback, which has another reference to the same array."""
    n, dtype = w.length(), w.dtype()
    part = w.pick(
        ["{0}", "{0}", "{0}", "{0}[::2]", "{0}[1:]", "{0}.reshape(-1)", "np.asarray({0})", "{0}.view()"]
    )
    way = w.pick(
        ["global", "dict", "attribute", "list", "default", "closure", "partial", "method", "memoryview"]
    )
    source = part.format("u")
    hold: Lines = []
    outer: Lines = []
    inner: Lines = []
    seen = {"global": f"SEEN{s}", "dict": f"BOX[{s}]", "attribute": f"HOLD.a{s}", "list": "ITEMS[0]"}.get(
        way, "a"
    )
    if way == "memoryview":
        hold, seen = [f"BOX[{s}] = memoryview(u)"], f"np.asarray(BOX[{s}])"
    elif way in ("global", "dict", "attribute", "list"):
        hold = [f"global SEEN{s}"] * (way == "global") + [f"{seen} = {source}"]
    does = [f"LOG.append({w.read(seen)})" if w.chance(0.6) else w.write(seen) for _ in range(w.between(1, 2))]
    if way in ("global", "dict", "attribute", "list", "memoryview"):
        outer, name = [f"def tick{s}():", *indented(does)], f"tick{s}"
    elif way == "partial":
        outer, name = [f"def tick{s}(a):", *indented(does)], f"functools.partial(tick{s}, {source})"
    elif way == "method":
        seen = "self.a"
        does = [f"LOG.append({w.read(seen)})" if w.chance(0.6) else w.write(seen)]
        outer = [
            f"class Watch{s}:",
            *indented(
                ["def __init__(self, a):", *indented(["self.a = a"]), "", "def tick(self):", *indented(does)]
            ),
        ]
        name = f"Watch{s}({source}).tick"
    elif way == "default":
        inner, name = [f"def tick(a={source}):", *indented(does)], "tick"
    else:
        inner, name = [f"a = {source}", "def tick():", *indented(does)], "tick"
    body = [*w.run("u" if w.chance(0.6) else ["u", "b"], 1, 2)]
    w.put_in(body, "cb()")
    kernel = [
        f"def solve{s}(u, b, n, cb):",
        *indented([*w.loop(body, ["u"], "n"), w.pick(["return u", "return n"])]),
    ]
    call = f"solve{s}, u, b, {_count(w)}, {name}"
    scene = [*arrays_made(w, "ub", n, dtype), *hold, *inner, *called(w, call, f"{s} callback", "ub")]
    return [*outer, "", "", *kernel, "", "", f"def scene{s}():", *indented(scene)]


def attributes(w: Writer, s: int) -> Lines:
    """Write a class with arrays in attributes, and methods that use them by several names."""
    n, dtype = w.length(), w.dtype()
    alias = w.pick(["u[::-1]", "u", "u[:]", "u.reshape(-1)", "u.view()", "np.asarray(u)", "v"])
    init = ["self.u = u", "self.v = v", f"self.w = {alias}", "self.step_count = 0"]
    takes = w.pick(
        ["y = np.asarray(self.u)", "y = self.u", "y = self.u.view()", "y = self.w", "y = self.get()"]
    )
    result = (
        "self.u.max() + 0" if w.real else w.pick(["self.u.sum()", "float(self.w.sum())", "self.u.max() + 0"])
    )
    step = [takes, *w.run(["y"], 1, 2), *w.block(["self.u", "self.v", "y"], "n"), "self.step_count += 1"]
    methods = [
        "def __init__(self, u, v):",
        *indented(init),
        "",
        "def get(self):",
        *indented(["return self.u"]),
        "",
        "def step(self, n):",
        *indented([*step, f"return {result}"]),
        "",
        "def other(self, n):",
        *indented(
            [
                *w.block(["self.v", "self.w"], "n"),
                w.pick(["self.u = self.u + 1", "self.u += 1", "pass"]),
                "return self.w",
            ]
        ),
        "",
        "@property",
        "def total(self):",
        *indented([f"return {result}"]),
    ]
    scene = [
        *arrays_made(w, "uv", n, dtype),
        f"m = Model{s}(u, v)",
        *called(w, f"m.step, {_count(w)}", f"{s} step", "uv"),
        *called(w, f"m.other, {_count(w)}", f"{s} other", "uv", 3),
        "show('total', m.total, m.u, m.v, m.w, m.step_count)",
    ]
    return [f"class Model{s}:", *indented(methods), "", "", f"def scene{s}():", *indented(scene)]


def owners(w: Writer, s: int) -> Lines:
    """Write arrays over other memory: bytes, arrays of the standard library, mapped files, ctypes."""
    n = w.length()
    kind = w.pick(["bytearray", "array", "mmap", "ctypes", "memoryview"])
    make = {
        "bytearray": f"raw = bytearray(8 * {n})",
        "array": f"raw = array.array('d', [0.0]) * {n}",
        "mmap": f"raw = mmap.mmap(-1, 8 * {n})",
        "ctypes": f"raw = (ctypes.c_double * {n})()",
        "memoryview": f"raw = memoryview(bytearray(8 * {n}))",
    }[kind]
    inside = w.chance(0.5)
    fill = [f"v[:] = {w.made(n, 'f8')}"]
    use = [*w.run(["v", "b"], 1, 3)]
    look = w.pick(
        [
            "LOG.append(bytes(raw)[:16])",
            "LOG.append(bytes(memoryview(raw).cast('B')[-8:]))",
            "LOG.append(float(np.frombuffer(raw)[0]))",
            "np.frombuffer(raw)[:1] = 3",
        ]
    )
    make_view = w.pick(
        [
            "np.frombuffer(raw)",
            "np.frombuffer(raw, dtype='f8')",
            "np.asarray(memoryview(raw).cast('B')).view('f8')",
        ]
    )
    v = [f"v = {make_view}"] if inside else []
    body = [
        *v,
        *w.loop([*use, *([look] if w.chance(0.5) else [])], ["v"], "n"),
        look,
        *w.run(["v"], 1, 1),
        look,
        "return v",
    ]
    kernel = [f"def owned{s}({'raw' if inside else 'v, raw'}, b, n):", *indented(body)]
    scene = [
        make,
        f"v = {make_view}",
        *fill,
        f"b = {w.made(n, 'f8')}",
        *called(w, f"owned{s}, {'raw' if inside else 'v, raw'}, b, {_count(w)}", f"{s} owner", "vb"),
        "show('bytes', bytes(raw))",
    ]
    return [*kernel, "", "", f"def scene{s}():", *indented(scene)]


def same_twice(w: Writer, s: int) -> Lines:
    """Write calls whose arguments are parts of the same array."""
    n, dtype = w.length(), w.dtype()
    ways = ["a", "a[::-1]", "a.view()", "np.asarray(a)", "a.reshape(-1)", "c", "b"]
    body = w.block(["x", "y", "z"], "n")
    kernel = [
        f"def mixed{s}(x, y, z, n):",
        *indented([*body, w.pick(["return x", "return y, z", "return None", "return x + y"])]),
    ]
    scene = [*arrays_made(w, "abc", n, dtype)]
    for _ in range(w.between(1, 3)):
        x, y, z = w.pick(ways), w.pick(ways), w.pick(ways)
        scene += called(w, f"mixed{s}, {x}, {y}, {z}, {_count(w)}", f"{s} {x} {y} {z}", "abc")
    return [*kernel, "", "", f"def scene{s}():", *indented(scene)]


def matrices(w: Writer, s: int) -> Lines:
    """Write operations on rows, columns, transposes, reshapes and products of matrices."""
    r = w.pick([1, 2, 5, 17, 40, 64])
    dtype = w.dtype()
    views = [
        "v = m[0]; v += 1",
        "v = m[:, 0]; v -= m[:, -1]",
        "v = m.T; v[0] += 2",
        "m[1:] += m[:-1]",
        "v = m.ravel(); v[::3] = 1",
        "v = m.reshape(-1, 1); v *= 2",
        "m[:, ::2] -= 1",
        "for row in m: row += row[0]",
        "for row in m: row[:] = k.max()",
        "v = m.diagonal().copy(); m[0] = v",
        "m += k.T",
        "k[...] = m",
        "m[:] = k[::-1, ::-1]",
        "m[0], m[-1] = m[-1], m[0]",
        "m -= m.mean(axis=0).astype(m.dtype) * 0",
        "for i in range(len(m)): m[i] -= k[:, i]",
        "for i in range(len(m)): m[i, :i] = m[:i, i]",
        "m[...] = np.transpose(k)",
        "np.add(m, m.T, out=m)",
        "m *= m.T",
    ]
    if not w.real:
        views += [
            "m[:] = m @ k",
            "m[0] = k @ m[0]",
            "m += m.sum(axis=0)",
            "m += k.sum(axis=1, keepdims=True)",
            "for i in range(len(m)): m[i] = m[i] @ k; m %= 31",
        ]
    body: Lines = []
    for _ in range(w.between(1, 4)):
        text = w.pick(views)
        body += [text] if text.startswith("for") else text.split("; ")
        body += w.bounds(["m"])[:1]
    if w.chance(0.7):
        body = w.loop(body, ["m"], "n", "q")
    kernel = [
        f"def rows{s}(m, k, n):",
        *indented([*body, *w.bounds(["m", "k"]), w.pick(["return m", "return m.T", "return k[0]"])]),
    ]
    other = w.pick(["k", "m", "m.T", "m[::-1]", "np.asarray(m)"])
    scene = [
        f"m = {w.made(r * r, dtype)}.reshape({r}, {r})",
        f"k = {w.made(r * r, dtype)}.reshape({r}, {r}){w.pick(['', '.T'])}",
        *called(w, f"rows{s}, m, {other}, {_count(w)}", f"{s} rows {other}", "mk", w.pick([3, 30])),
    ]
    return [*kernel, "", "", f"def scene{s}():", *indented(scene)]


SCENES: dict[str, Scene] = {f.__name__: f for f in (callback, attributes, owners, same_twice, matrices)}
