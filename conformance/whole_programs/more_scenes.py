"""Scenes with exceptions and with changing names, types and lengths; and the table of all scenes."""

from __future__ import annotations

from .call_scenes import CALL_SCENES
from .function_scenes import FUNCTION_SCENES
from .identity_scenes import IDENTITY_SCENES
from .language_scenes import LANGUAGE_SCENES
from .list_scenes import LIST_SCENES
from .object_scenes import OBJECT_SCENES
from .others_scenes import OTHERS_SCENES
from .recursive_scenes import RECURSIVE_SCENES
from .scenes import SCENES, Scene, arrays_made, called
from .statements import Lines, Writer, indented

__all__ = ["ALL_SCENES"]


def failures(w: Writer, s: int) -> Lines:
    """Write an exception in the middle of a loop, after which earlier writes must be visible."""
    n, dtype = w.length(), w.dtype()
    bad = w.pick(
        [
            "t = 12 // (3 - k)",
            "t = x[len(x) + k - 3]",
            "x[:2] += np.ones(k + 1, x.dtype)",
            "x[k - 4] = y[len(y) - 3 + k]",
            "if k == 3: raise KeyError(k)",
            "t = [1, 2, 3][k]",
            "x[k:] = np.arange(len(x))",
            "np.add(x, y[k // 3:], out=x)",
            "x[:] = x / (y * 0) if k == 3 else x",
            "t = np.ones(3) / (3 - k) + x[0]",
            "t = int(np.float64('nan') if k == 3 else 0)",
            "x.shape = (len(x) + k // 3,)",
            "t = np.sqrt(np.float64(2 - k))",
            "assert k < 3, 'too large'",
            "x[0] = 'a' if k == 3 else 1",
            "t = {}[k] if k == 3 else 1",
            "x += [1] * (len(x) + k // 3)",
            "t = undefined_name if k == 3 else 0",
        ]
    )
    body = w.run(["x", "y"], 1, 3)
    w.put_in(body, bad)
    state = w.pick(
        [
            "np.errstate(all='raise')",
            "np.errstate(divide='raise')",
            "np.errstate(all='ignore')",
            "np.errstate()",
        ]
    )
    loop = [f"for k in range({w.pick(['n', '6', '8'])}):", *indented(body)]
    way = w.pick(["caught inside", "finally", "outside", "state"])
    if way == "caught inside":
        lines = [
            "try:",
            *indented(loop),
            f"except {w.pick(['Exception', 'ZeroDivisionError', 'IndexError', 'ValueError'])} as error:",
            *indented(["LOG.append(type(error).__name__)", *w.statement(["x", "y"])]),
            "return x",
        ]
    elif way == "finally":
        lines = [
            "try:",
            *indented(loop),
            "finally:",
            *indented([*w.statement(["x"]), f"LOG.append({w.read('x')})"]),
            "return y",
        ]
    elif way == "state":
        lines = [f"with {state}:", *indented(loop), "return x"]
    else:
        lines = [*loop, "return y"]
    kernel = [f"def fails{s}(x, y, n):", *indented(lines)]
    call = f"fails{s}, x, {w.pick(['y', 'y', 'x', 'x[::-1]'])}, 7"
    scene = [*arrays_made(w, "xy", n, dtype), *called(w, call, f"{s} fails", "xy")]
    return [*kernel, "", "", f"def scene{s}():", *indented([f"with {state}:", *indented(scene)])]


def rebound(w: Writer, s: int) -> Lines:
    """Write globals and functions of NumPy that are rebound between calls, or by the function itself."""
    n, dtype = w.length(), w.dtype()
    use = w.pick(
        [f"TABLE{s}", f"RATE{s}", f"step{s}(x)", "np.maximum(x, 2)", "np.minimum(x, 5)", f"HOLD.rate{s}"]
    )
    change = {
        "T": f"TABLE{s} = {w.pick(['TABLE{0}[::-1]', 'x', 'TABLE{0} + 1', 'x[::-1]']).format(s)}",
        "R": f"RATE{s} = {w.pick(['3', 'np.int64(2)', 'RATE{0} + 1', 'x[:1]']).format(s)}",
        "s": f"step{s} = {w.pick(['abs', 'np.negative', 'lambda a: a * 2'])}",
        "n": w.pick(["np.maximum = np.minimum", "np.minimum = lambda a, b: a - b", "np.maximum = np.add"]),
        "H": f"HOLD.rate{s} = {w.pick(['4', 'x', 'np.float64(1)'])}",
    }[use[0]]
    body = [*w.run(["x"], 0, 1), f"x[:] = x + {use}", *w.run(["x"], 0, 2)]
    inside = w.chance(0.3) and use[0] in "TRH"
    if inside:
        w.put_in(body, f"if k == 1: {change}")
    names = [f"TABLE{s}", f"RATE{s}", f"step{s}"]
    kernel = [
        f"def uses{s}(x, n):",
        *indented([f"global {', '.join(names)}", *w.loop(body, ["x"], "n"), "return x"]),
    ]
    again = [f"shown('{s} changed', uses{s}, x, 3)", "show('x', x)"]
    scene = [
        f"global {', '.join(names)}",
        "kept = np.maximum, np.minimum",
        *arrays_made(w, "x", n, dtype),
        f"TABLE{s}, RATE{s} = {w.made(n, dtype)}, 2",
        f"HOLD.rate{s} = 1",
        *called(w, f"uses{s}, x, 3", f"{s} uses", "x"),
        change,
        *again,
        *again,
        "settle()",
        *again,
        "np.maximum, np.minimum = kept",
        *again,
    ]
    first = [
        f"TABLE{s} = RATE{s} = 1",
        "",
        "",
        f"def step{s}(a):",
        *indented([f"return {w.pick(['a + 1', '-a', 'a[::-1]', 'a'])}"]),
    ]
    return [*first, "", "", *kernel, "", "", f"def scene{s}():", *indented(scene)]


def other_types(w: Writer, s: int) -> Lines:
    """Write calls with other sizes, dtypes, layouts and classes than the first one."""
    n, dtype = w.length(), w.dtype()
    kernel = [f"def takes{s}(x, y, n):", *indented([*w.block(["x", "y"], "n"), "return x"])]
    calls = []
    for _ in range(w.between(2, 4)):
        m = w.length()
        one = w.made(m, w.pick(["f8", "f4", "i8", "i4", "u1", "i2", "f8"]))
        view = w.pick(
            [
                "{0}",
                "{0}[::-1]",
                "{0}.view(Sub{1})",
                "{0}.reshape(1, -1)",
                "{0}.tolist()",
                "np.broadcast_to({0}[:1], ({2},))",
                "{0}.astype('>f8')",
                "{0}.astype(complex)",
                "{0}.astype(object)",
                "{0}.astype(bool)",
                "np.ma.array({0}, mask={0} > 9)",
                "np.float64(3)",
                "{0}.reshape(-1, 1)",
                "locked({0})",
                "np.repeat({0}, 3)[::3]",
                "np.matrix({0})",
                "{0}.astype('f2')",
            ]
        ).format(one, s, m)
        calls += [
            f"a, b = {view}, {w.made(m, dtype)}",
            f"shown('{s} other', takes{s}, a, b, 3)",
            "show('a', a, b)",
            # a list may become twice as long in each call
            f"for _ in range(20): quiet(takes{s}, list(a) if type(a) is list else a, b, 3)",
            "settle()",
            f"shown('{s} other', takes{s}, {w.pick(['a, b', 'b, a', 'b, b'])}, 3)",
            "show('a', a, b)",
        ]
    scene = [*arrays_made(w, "xy", n, dtype), *called(w, f"takes{s}, x, y, 3", f"{s} takes", "xy"), *calls]
    special = w.pick(
        [
            [
                "def __iadd__(self, other):",
                "    LOG.append('iadd')",
                "    return np.ndarray.__iadd__(self, other)",
            ],
            ["def __array_finalize__(self, other):", "    self.tag = getattr(other, 'tag', 0) + 1"],
            [
                "def __setitem__(self, key, value):",
                "    LOG.append('set')",
                "    super().__setitem__(key, value)",
            ],
            ["def __getitem__(self, key):", "    return np.asarray(self)[key] * 1"],
            ["tag = 1"],
        ]
    )
    cls = [f"class Sub{s}(np.ndarray):", *indented(special)]
    return [*cls, "", "", *kernel, "", "", f"def scene{s}():", *indented(scene)]


def lengths(w: Writer, s: int) -> Lines:
    """Write calls with arrays and lists of different lengths, and numbers that fit these or do not."""
    dtype = w.dtype()
    more = w.pick(["0", "0", "1", "2", "n // 3", "n % 4"])
    given = w.pick(["n", "n", "len(x)", "n - 1", "n // 2", "n + 1", "m", "n % 5", "(n, m)", "(m, 2)"])
    count = "k" if not given.startswith("(") else w.pick(["k[0]", "k[1]"])
    stop = w.pick(["len(x)", "min(len(x), len(y))", count])
    flat = [
        f"for i in range({w.pick(['1', '0', '2', count])}, {stop}):",
        *indented(
            w.pick(
                [
                    ["x[i] = x[i - 1] + 1"],
                    ["x[i] += y[i]", "total += x[i]"],
                    [f"x[i] = (x[i - {count}] * 3 + i) % 17"],
                    ["x[i - 1] = y[i - 1] - x[i]", "if x[i] > 3: total -= 1"],
                    ["for j in range(i): total += x[j] * (i - j)", "total %= 61"],
                    ["x[i:] += 1"],
                    ["total = total + x[-i]"],
                    ["if x[i] > y[i % len(y)]: total += x[i]"],
                    ["if x[i] > total: total = x[i]", "else: total = total * 0.5"],
                    ["total = max(total, x[i])", "if y[i // 2] > 3: total = -abs(total - y[0])"],
                    ["if x[i] > 5: total = 0.0", "elif x[i] > 2: total += x[i]", "x[i] = total % 7"],
                    ["x[i % len(y)] = y[i // 2] + i"],
                ]
            )
        ),
    ]
    whole = w.pick(
        [
            ["x[1:] += x[:-1]"],
            ["x[:] = x + y[:len(x)]", "total = total + x.max()"],
            [f"x[{count}:] = x[:len(x) - {count}] * 2"],
            ["z = np.zeros(len(x))", "z[1:] = x[1:]", "x = z * 2 + 1"],
            ["x = x[::-1] + y"],
            ["x = np.outer(x, y)[0] + 1"],
            [f"x = np.ones({given if given.startswith('(') else 'len(x)'}) + x.size"],
            ["x = x.reshape(-1, 1) * np.arange(3.0)"],
            ["x = np.concatenate((x, y))"],
            [f"x = x.astype('f8') / {count}" if w.real else f"x = x * {count}"],
        ]
    )
    parts = [
        ["total = 0", *flat],
        ["total = 0.0", *whole],
        ["total = 1", *whole, *flat],
        ["total = 2", *flat, *whole],
    ]
    kernel = [f"def sized{s}(x, y, k):", *indented([*w.pick(parts), "return x, total"])]
    rows = w.chance(0.2)
    made = f"np.arange({'2 * ' * rows}{{}}) % 13".format
    shape = ".reshape(2, -1)" * rows
    lists = ".tolist()" if w.chance(0.25) else ""
    each = [
        f"x = ({made('n')}).astype({dtype!r}){shape}{lists}",
        f"y = ({made(f'(n + {more})')} + 1).astype({dtype!r}){shape}{lists}",
        f"m = {w.pick(['3', 'n % 3', 'n // 4', 'n * n % 7', '2 * n'])}",
        f"shown('{s} sized', sized{s}, x, y, {given})",
        f"show('{s} x', x, y)",
    ]
    sizes = [w.pick([7, 12, 30, 400, 3000]) + w.between(-3, 9) for _ in range(3)]
    later = [w.pick([0, 1, 2, 3, 5, 9, 17, 300, 2000]) for _ in range(5)]
    scene = [
        f"for n in {sizes * 4}:",
        *indented(each),
        "settle()",
        f"for n in {[*later, *sizes]}:",
        *indented([*each, f"if n == {later[1]}: settle()"]),
        "settle()",
        f"for n in {[*later, *sizes]}:",
        *indented(each),
    ]
    return [*kernel, "", "", f"def scene{s}():", *indented(scene)]


ALL_SCENES: dict[str, Scene] = SCENES | OBJECT_SCENES | FUNCTION_SCENES | RECURSIVE_SCENES | IDENTITY_SCENES
ALL_SCENES |= OTHERS_SCENES | LIST_SCENES | LANGUAGE_SCENES | CALL_SCENES
ALL_SCENES |= {f.__name__: f for f in (failures, rebound, other_types, lengths)}
