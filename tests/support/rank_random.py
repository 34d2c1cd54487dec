"""Random programs on distributed arrays, as text, compared with the same on plain arrays.

``mpiexec -n 3 python -m rank_random 0 100`` runs those of the numbers 0 to 99; with a third number, so many
simulated ranks do, without ``mpiexec``.  A program that differs is printed.

Arrays hold small whole numbers, so that sums are exact in any order; what is rounded is kept in ``r`` and
``s`` alone, which no condition and no sort reads.
"""

import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rank_keys import laid_out

import dcarray as dc
from dcarray.comm import CommError, run, world

TABLES, LINES, ROUGH = ("a", "b", "c"), ("x", "y"), ("r", "s")
Line = Callable[[random.Random], str]


def _of(names: tuple[str, ...]) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(names)


_table, _line = _of(TABLES), _of(LINES)


def _keys(rng: random.Random) -> tuple[str, str]:
    """Two index expressions that select equal shapes from every table."""
    pairs = [
        ("1:", ":-1"), (":-1", "1:"), ("2:", ":-2"), ("1:-1", "2:"), ("1:-1", ":-2"), ("::-1", ":"),
        (":", "::-1"), ("::2", "::2"),
        ("1::2", "-1:0:-2") if rng.random() < 0.1 else ("1:-1", "-2:0:-1"), ("0", "-1"), ("-1", "1"),
        (":", ":"), ("2:5", "1:4"),
    ]  # fmt: skip
    (p, q), (s, t) = rng.choice(pairs), rng.choice(pairs)
    return f"{p}, {s}", f"{q}, {t}"


def _stencil(rng: random.Random) -> str:
    p, q = rng.sample(TABLES, 2)
    near = f"{q}[:-2, 1:-1] + {q}[2:, 1:-1] - {q}[1:-1, :-2] + {q}[1:-1, 2:]"
    far = f"{q}[:-2, :-2] - {q}[2:, 2:] + 2 * {q}[1:-1, 1:-1]"
    body = rng.choice([near, far, f"{near} + {far}"])
    back = rng.choice([f"{q}[1:-1, 1:-1] = {p}[1:-1, 1:-1] - 1", f"{p}, {q} = {q}, {p}", f"{q}[:] = {p} % 5"])
    return f"for _ in range({rng.randint(1, 4)}):\n    {p}[1:-1, 1:-1] = ({body}) % 7\n    {back}"


def _sweep(rng: random.Random) -> str:
    p, n = _table(rng), rng.randint(1, 5)
    return rng.choice(
        [
            f"for k in range(1, {n}):\n    {p}[k] = ({p}[k - 1] + {p}[k]) % 9",
            f"for k in range({n}):\n    {p}[:, k] -= {p}[:, -1 - k]",
            f"for k in range({n}):\n    x[k:] = (x[k:] + y[k]) % 9",
        ]
    )


def _products(rng: random.Random) -> str:
    p, q = _table(rng), _table(rng)
    return rng.choice(
        [
            f"r = {p} @ {q}.T",
            f"r = {p}.T @ {q}",
            f"{p}[...] = ({p} @ ({q}.T @ {q})) % 9",
            f"y[...] = ({p} @ {q}[1]) % 9",
            f"r = np.outer(x, {p}[0])",
            f"r = np.einsum('ij,ij->i', {p}, {q})",
            f"{p}[2:] = np.outer(x, {p}[0])[2:] % 5",
            f"r = np.dot(x, y) + x @ {p}",
            f"r = np.tensordot({p}, {q}, axes=([0], [0]))",
            f"r = {p}[1:3] @ {q}[:, ::2].T[:, :3].T.T"
            f" if {p}.shape[1] == 2 * ({q}.shape[1] // 2) + 9 else {p}[1:, ::2] @ {q}[:-1, ::2].T",
        ]
    )


def _folds(rng: random.Random) -> str:
    p, axis, keep = _table(rng), rng.choice([0, 1]), rng.choice(["", ", keepdims=True"])
    fold = rng.choice(["sum", "max", "min", "any", "all", "argmax", "argmin"])
    return rng.choice(
        [
            f"r = {p}.{fold}(axis={axis}{keep})",
            f"r = np.{fold}({p})",
            f"{p} -= {p}.{rng.choice(['max', 'min'])}(axis={axis}, keepdims=True)",
            f"{_of(ROUGH)(rng)} = {p}.mean(axis={axis}{keep})",
            f"s = {p}.std(axis={axis}) + np.var({p})",
            f"x[...] = {p}.sum(axis=1) % 9",
            f"{p} += {p}.sum(axis=0) % 3",
            "x -= x.max()",
            f"r = np.cumsum({p}, axis={axis})",
            "y[...] = np.cumsum(x) % 9",
            f"if {p}.sum() > 5:\n    {p} -= 1\nelse:\n    {p} += 1",
            f"r = np.prod({p} % 3 - 1, axis={axis})",
            f"r = np.median({p}, axis={axis})",
            f"r = np.count_nonzero({p} > 1, axis={axis})",
            f"r = float({p}[1, -1]) + int(x[2])",
            f"r = np.linalg.norm({p}, axis={axis}) + np.trace({p})",
        ]
    )


def _lines(rng: random.Random) -> str:
    p, q, axis = _table(rng), _table(rng), rng.choice([0, 1])
    return rng.choice(
        [
            f"s = np.fft.fft({p}, axis={axis})",
            f"s = np.fft.rfft2({p})",
            f"s = np.fft.ifft(np.fft.fft({p}[:, ::2], axis={axis}), axis={axis}).real",
            f"s = np.abs(np.fft.fftshift(np.fft.fftn({p})))",
            f"s = np.fft.fft(x, {rng.randint(2, 20)})",
            f"{p} = np.sort({p}, axis={axis})",
            f"{p}.sort(axis={axis})",
            f"r = np.argsort({p}, axis={axis}, kind='stable')",
            "x = np.sort(x)[::-1]",
            "r = np.argsort(x, kind='stable')",
            f"r = np.unique({p})",
            "r = np.searchsorted(np.sort(x), y)",
            f"r = np.partition({p}, 1, axis={axis})",
            f"{p} = np.flip({q}, {axis}).copy()",
            f"r = np.diff({p}, axis={axis})",
            f"{p} = np.roll({p}, {rng.randint(-9, 9)}, axis={rng.choice([0, 1, (0, 1)])})",
            "y = np.roll(x, 2)",
            f"r = np.concatenate([{p}, {q}], axis={axis})",
            f"r = np.stack([{p}, {q}], axis={rng.choice([0, 1, 2])})",
            f"r = np.pad({p}, {rng.randint(0, 2)})",
            f"r = np.repeat({p}, 2, axis={axis})",
            "r = np.tile(x, 3)",
            f"r = np.take({p}, [0, -1, 1], axis={axis})",
            "r = np.bincount(np.abs(x).astype(int) % 5)",
            f"r = np.gradient({p}, axis={axis})",
            f"r = np.trapezoid({p}, axis={axis})",
            "r = np.interp(y, np.arange(9.0), np.arange(9.0) ** 2)",
        ]
    )


def _masks(rng: random.Random) -> str:
    p, q, c = _table(rng), _table(rng), rng.randint(-4, 4)
    return rng.choice(
        [
            f"{p}[{p} > {c}] = {c}", f"{p}[{q} > {c}] += 1", f"m = {p} < {q}; {p}[m] = {q}[m]",
            f"r = {p}[{p} != {c}]", f"x[y > {c}] = 0", f"r = {p}[{p} > {c}].sum()",
            f"{p} = np.where({p} > {q}, {p}, {c})", f"np.maximum({p}, {c}, out={p})",
            f"np.add({p}, {q}, out={p}, where={q} > {c})",
            f"r = np.nonzero({p} > {c})[{rng.choice([0, 1])}]", f"r = np.flatnonzero(x == {c})",
            f"{p}[x > {c}] = y[0]", f"r = {p}[:, {p}[0] > {c}]", f"{p}[[0, -1, 2]] = {q}[[1, 1, 0]]",
            f"{p}[np.array([0, 1]), np.array([2, -1])] += 3", f"r = {p}[[2, 0, -1]]",
            f"np.clip({p}, -{abs(c)}, 5, out={p})", f"np.copyto({p}, {q}, where={p} > {c})",
            f"np.place({p}, {p} < {c}, [1, 2])", f"np.putmask(x, x < {c}, y)",
            f"r = np.select([{p} > 1, {q} > 0], [{p}, {q}])",
        ]
    )  # fmt: skip


def _views(rng: random.Random) -> str:
    p, q = _table(rng), _table(rng)
    one, two = _keys(rng)
    sign = rng.choice(["+", "-", "*"])
    return rng.choice(
        [
            f"{p}[{one}] = {q}[{two}]",
            f"{p}[{one}] = {p}[{two}]",
            f"v = {p}[{one}]; v {sign}= 2",
            f"v = {p}.T; v += np.arange(v.shape[1]) % 3",
            f"v = {p}[{one}]; {p} += 1; r = v.copy()",
            f"{p}[{one}] {sign}= {q}[{two}]",
            f"{p}[...] = {p}[::-1]",
            f"{p} = {q}.copy()",
            f"{p} = {q}",
            f"v = {p}.reshape(-1); v[3:9] = 1",
            f"r = {p}.T.reshape({p}.shape) + {q}",
            f"{p}.T[{rng.randint(0, 3)}] = x",
            f"v = {p}[:, 1]; v[...] = x; x[...] = v + 1",
            f"r = np.moveaxis({p}[None], 0, 2)[..., 0].copy()",
            f"r = ({p}[:, None, :] + {q}[None, :3].swapaxes(0, 1)[0]).transpose(2, 0, 1)",
            f"v = np.diagonal({p}); r = v + 1",
            f"{p} = {p}.astype({rng.choice(['np.int64', 'np.float32', 'float'])}) % 9 + 0.0",
            f"t = np.asarray({p}).copy(); t[0] = 5; {p}[...] = t",
            f"{p}[1:, 1:] = {p}[:-1, :-1] % 7",
            f"r = {p}.ravel()[::3].sum()",
            f"r = np.array({p}.tolist())",
            f"x = {p}[:, {rng.randint(0, 3)}]",
            f"y = {p}[:, -1].copy()",
            f"r = [v.sum() for v in {p}[:2]][1]",
            f"v = {p}[{rng.choice(['1', '-1', '2:4'])}]; v -= v.max(); r = v.sum()",
            "r = np.broadcast_to(x, (2, x.size)) + 1",
            f"{p}.flat[{rng.randint(0, 9)}] = 4",
        ]
    )


def _errors(rng: random.Random) -> str:
    p, q = _table(rng), _table(rng)
    how = rng.choice(["raise", "ignore"])
    return rng.choice(
        [
            f"with np.errstate(divide='{how}', invalid='{how}'):\n    w = np.abs({p}) / {q}; evaluate(w)",
            f"with np.errstate(invalid='{how}'):\n    w = np.sqrt({p}); evaluate(w)",
            f"with np.errstate(all='{how}'):\n    w = np.log(x); evaluate(w)", f"r = {p} + {q}[:, :-1]",
            f"{p}[:, 99] = 0", "r = x @ y[1:]", f"{p} += {p}.T[:2]", f"r = np.concatenate([{p}, x])",
            f"{p}.reshape(5, -1, 77)", f"r = {p}[[99]]", f"np.add({p}, 1j, out={p})",
            f"r = bool({p} > 1)", f"r = {p}.sum(axis=3)",
        ]
    )  # fmt: skip


def _plain(rng: random.Random) -> str:
    p, q, o = _table(rng), _table(rng), rng.choice(["+", "-", "*"])
    return rng.choice(
        [
            f"{p} = ({p} {o} {q}) % 9", f"{p} {o}= {rng.randint(1, 3)}",
            f"{p} = np.abs({q}) {o} x[:, None] % 5", f"x = (x {o} y) % 9",
            f"r = np.sqrt(np.abs({p})) / 3", f"r = np.exp(-np.abs({p})) + np.arctan2({p}, {q})",
            f"s = np.tanh({p} / 4) * 1j", f"{p} %= 7",
            f"r = np.floor_divide({p}, 3) + np.hypot({p}, {q})", f"r = -{p} ** 2",
            f"{p} = np.zeros_like({q}) + x[-1]",
            f"r = np.ones(({rng.randint(1, 9)}, 3)) * 2 + np.arange(3)",
            "r = np.linspace(0, 1, x.size) * x", "r = np.meshgrid(x, y)[0] + 1",
        ]
    )  # fmt: skip


KINDS: dict[Line, int] = {
    _stencil: 3, _sweep: 1, _products: 2, _folds: 4, _lines: 4, _masks: 4, _views: 6, _errors: 1, _plain: 4,
}  # fmt: skip


def text(seed: int) -> tuple[tuple[int, int], list[str]]:
    """The shape of the tables, and the statements."""
    rng = random.Random(seed)
    shape = rng.choice([(7, 9), (8, 8), (13, 6), (5, 17), (24, 31)])
    kinds = rng.choices(list(KINDS), list(KINDS.values()), k=rng.randint(3, 12))
    return shape, [kind(rng) for kind in kinds]


def _perform(seed: int, wrapped: bool) -> tuple[list[str], dict[str, Any]]:
    """The exceptions of the statements, and the variables after them."""
    shape, statements = text(seed)
    rng, layouts = np.random.default_rng(seed), random.Random(seed)
    wrap = (lambda a: _wrapped(a, layouts)) if wrapped else (lambda a: a)
    names: dict[str, Any] = {name: wrap(rng.integers(-4, 5, shape) + 0.0) for name in TABLES}
    names |= {name: wrap(rng.integers(-4, 5, shape[0]) + 0.0) for name in LINES}
    scope = {**names, "np": np, "evaluate": dc.evaluate if wrapped else lambda *args: None}
    raised = []
    for statement in statements:
        try:
            exec(statement, scope)
            raised.append("")
        except CommError:
            raise
        except Exception as error:
            raised.append(next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"))
    return raised, {name: scope[name] for name in (*TABLES, *LINES, *ROUGH, "v") if name in scope}


def _wrapped(a: Any, rng: random.Random) -> Any:
    """The distributed array, in the default layout or in a random one."""
    return dc.asarray(a) if rng.random() < 0.6 else laid_out(rng, a)


def difference(seed: int) -> str | None:
    """The difference of a program's results from those on plain arrays, as text; empty if there is none."""
    with np.errstate(all="ignore"), dc.options(distribute_above=0):
        raised, want = _perform(seed, False)
        raised_too, got = _perform(seed, True)
        if raised != raised_too:
            return f"raised {raised_too}, not {raised}"
        for name, value in want.items():
            a, b = np.asarray(value), np.asarray(got[name])
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                return f"{name} is {b.dtype} of {b.shape}, not {a.dtype} of {a.shape}"
            exact = a.dtype.kind not in "fc"
            if not (np.array_equal(a, b) if exact else np.allclose(b, a, 1e-9, 1e-9, equal_nan=True)):
                return f"{name} is\n{b}, not\n{a}"
    return None


def check(seeds: range) -> None:
    """Raise for the first program that differs."""
    for seed in seeds:
        try:
            told = difference(seed)
        except Exception as error:
            shape, statements = text(seed)
            error.add_note("\n".join([f"# number {seed}, tables of {shape}", *statements]))
            raise
        if told is not None:
            shape, statements = text(seed)
            raise AssertionError("\n".join([told, f"# number {seed}, tables of {shape}", *statements]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    first, count, *simulated = map(int, sys.argv[1:])
    if simulated:
        run(simulated[0], check, range(first, first + count))
    else:
        check(range(first, first + count))
    print(f"rank {world().rank} ended\n", end="", flush=True)
