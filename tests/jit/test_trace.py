"""Traced loops give NumPy's results: bit for bit but for sums."""

from typing import Any

import numpy as np
import pytest
from loop_requests import check, request, serve

from dcarray.core.errors import Untraceable
from dcarray.ir import interp
from dcarray.jit.loops.tracing.trace import trace


def data(*shape: int, seed: int = 0, dtype: Any = float) -> Any:
    r = np.random.default_rng(seed)
    return (r.random(shape) * 10 + 1).astype(dtype)


def refused(source: str, live: Any = None, **names: Any) -> str:
    with pytest.raises(Untraceable) as caught:
        trace(request(source, names, live))
    assert caught.value.line >= 1
    return caught.value.reason


def test_triangular_solve() -> None:
    traced = check(
        """
for i in range(x.shape[0]):
    x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
""",
        dict(x=data(12), b=data(12, seed=1), L=data(12, 12)),
        rtol=1e-12,
    )
    assert traced.inputs == ("L", "b", "x")
    assert [a.role for a in traced.region.arrays] == ["in", "in", "inout", "temp"]


def test_an_update_reads_all_before_it_writes() -> None:
    check("for k in range(3):\n    x[1:] = x[:-1]\n    x[:-1] += x[1:]", dict(x=data(9)))
    check("for k in range(3):\n    x[:k + 2] = x[k + 1::-1] * 2", dict(x=data(9)))
    check("for k in range(2, 7):\n    y = x[:k]\n    y += x[k - 1::-1]", dict(x=data(9)), live=())


@pytest.mark.parametrize("statement", ["x[::2] = x[:6]", "x[3:9] = x[::2]", "m[3] = m[:, 1]"])
def test_a_vector_that_is_assigned_to_a_part_of_itself_with_another_step_is_left_to_numpy(
    statement: str,
) -> None:
    assert "another step" in refused(statement, x=data(12), m=data(6, 6))


def test_a_row_is_assigned_to_the_column_that_it_meets_in_its_first_element() -> None:
    check("for k in range(5):\n    m[k, k:] *= 2\n    m[k:, k] = m[k, k:]", dict(m=data(5, 5)))


def test_a_vector_that_is_assigned_to_a_part_of_itself() -> None:
    check("x[2:9] = x[:7]; x[:7] = x[3:10]; x[1:4] = x[4:1:-1]; x[::2] = x[1::2]", dict(x=data(12)))
    check("x[:6] = x[::2] + 0.5; x[1::2] = x[::-2]", dict(x=data(12)))
    check("for k in range(1, 6):\n    m[k, :k] = m[:k, k]", dict(m=data(6, 6)))


def test_values_are_stored_before_memory_changes() -> None:
    check(
        """
for k in range(1, 5):
    first = x[k]
    x[k] = x[k - 1]
    x[k - 1] = first
    x[0], x[1] = x[1] + 1, x[0]
""",
        dict(x=data(9)),
    )


def test_loop_carried_scalars() -> None:
    loop = """
for k in range(1, r.shape[0]):
    beta *= 1.0 - alpha * alpha
    alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
    y[:k] += alpha * np.flip(y[:k])
    y[k] = alpha
"""
    names = dict(np=np, r=data(9), y=np.zeros(9), alpha=np.float64(0.5), beta=1.0)
    traced = check(loop, names, rtol=1e-9)
    assert not dict(traced.results)["beta"].weak
    check("for k in range(5):\n    a, b = b, a + b", dict(a=0.5, b=1.5))
    check("for k in range(5):\n    n += 1\n    x[k] = n", dict(n=3, x=data(5)))
    check("for k in range(5):\n    s += x[k]", dict(s=0, x=data(5)))


def test_the_first_iteration_may_differ() -> None:
    names: dict[str, Any] = dict(x=data(9, dtype="f4"), s=0.5, t=np.float64(0.1))
    loop = "for k in range(9):\n    x[k] = x[k] * s\n    s = t * 1.1"
    check(loop, names)  # the first one is traced by itself
    check(loop.replace("9", "5"), names)  # few turns, traced one by one
    nest = "for k in range(9):\n    for j in range(7):\n        n += x[k] * x[j]"
    check(nest, dict(x=data(9), n=0))


def test_whiles() -> None:
    check(
        """
while delta > 0.001:
    old = x.copy()
    x[1:-1] = (old[2:] + old[:-2]) / 2
    delta = np.sum(np.abs(x - old))
    turns += 1
""",
        dict(np=np, x=data(7), delta=1, turns=0),
        rtol=1e-12,
    )


def test_branches() -> None:
    check(
        """
for i in range(8):
    if x[i] > 5:
        y[i] = x[i]
        s = x[i] * 2
    elif i > 3:
        s = x[0]
    else:
        s = x[1]
    y[i] += s
""",
        dict(x=data(8), y=data(8, seed=2)),
    )
    check("for i in range(8):\n    if i > 0:\n        x[i] += x[i - 1]", dict(x=data(8)))
    check("for i in range(8):\n    x[i] = x[i] if x[i] > 5 else -x[i]", dict(x=data(8)))


def smooth(u: Any, weight: float = 0.5) -> Any:
    out = np.zeros_like(u)
    out[1:-1] = weight * (u[2:] + u[:-2])
    return out


def sign(x: Any) -> int:
    if x > 5:
        return 1
    return -1


def test_functions_are_inlined() -> None:
    check(
        "for k in range(4):\n    x += smooth(x)\n    x -= smooth(weight=0.1, u=x)",
        dict(x=data(9), smooth=smooth),
    )
    check("for k in range(4):\n    x[k] = x[k] + sign(x[k])", dict(x=data(9), sign=sign))
    check("for k in range(4):\n    u = smooth(u)", dict(u=data(9), smooth=smooth))


def test_sums_and_shapes() -> None:
    names = dict(np=np, x=data(5, 6, 4), y=np.empty((5, 4)), w=data(6, 4))
    check("for i in range(5):\n    y[i] = np.sum(x[i] * w, axis=0) / x.shape[1]", names, rtol=1e-12)
    check("for i in range(5):\n    y[i, :] = x[i].max(axis=0)", names)
    check("for i in range(4):\n    y[:, i] = x[:, i, :].mean(1) + w.T[i].sum()", names, rtol=1e-12)
    check("for i in range(5):\n    y[i] = w[:, 0] @ x[i]", names, rtol=1e-12)


def test_unsupported_code_is_refused() -> None:
    x = data(5)
    assert "in bounds" in refused("for i in range(5):\n    x[i + 1] = 0", x=x)
    assert "fit" in refused("for i in range(5):\n    x[:i] = x", x=x)
    assert "not known" in refused("for i in range(5):\n    x[i] = s\n    s = 1.0", x=x)
    assert "truth" in refused("for i in range(5):\n    if x:\n        x[i] = 1", x=x)


def test_overlapping_names_of_one_array() -> None:
    x = data(6)
    check("for i in range(1, 6):\n    y[i] = x[i - 1]\n    x[i] += y[i - 1]", dict(x=x, y=x))


def test_masks() -> None:
    names = dict(np=np, a=data(6, 6) - 5, n=np.zeros((6, 6), int), s=np.zeros(4), q=np.zeros(4), b=data(6, 6))
    check(
        """
for k in range(4):
    a[a > 0] = a[a > 0] ** (-1.5)
    a[a > 2] -= 1
    m = a < 1
    n[m] = k
    s[k] = a[m].sum()
    q[k] = b[m].mean()
    a[k][a[k] > 0.5] *= 0.5
""",
        names,
        rtol=1e-12,
    )
    refused("for k in range(4):\n    x[y > 2] = x[x > 1]", x=data(5), y=data(5))
    refused("for k in range(4):\n    x[y[:, 0] > 2] = x[y > 2]", x=data(5, 5), y=data(5, 5))
    refused("for k in range(4):\n    z[z > 2] += 0.5", z=data(5, dtype=int))


@pytest.mark.parametrize(
    "fold",
    ["sum()", "sum(0)", "sum(axis=0)", "mean()", "mean(axis=0)", "max()", "min(0)", "max(axis=0)", "any()"]
    + ["var()", "std(ddof=1)"],
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?"])
def test_reductions_of_selections(fold: str, dtype: str) -> None:
    if fold[:3] in ("mea", "var", "std") and dtype in ("i4", "?"):
        pytest.skip("it is left to NumPy")
    a, b = data(6, 4).astype(dtype), data(6).astype(dtype)
    names = dict(np=np, a=a, b=b, m=np.array([1, 0, 1, 1, 0, 1], bool), o=np.zeros((4, 4)), s=np.zeros(4))
    check(f"for k in range(4):\n    o[k] = a[m].{fold} + k", names, rtol=1e-6)
    check(f"for k in range(4):\n    s[k] = b[m].{fold}", names, rtol=1e-6)
    if "0" not in fold:
        check(f"for k in range(4):\n    s[k] = a[a >= 0].{fold}", names, rtol=1e-6)


def test_lengths_of_selections() -> None:
    names = dict(np=np, a=data(6, 4), b=data(6), o=np.zeros(6), n=np.zeros(6, int), c=0, s=0, k=0)
    check(
        """
for k in range(6):
    v = b[b > k / 4]
    if len(v):
        o[k] = v.mean()
    s = v.size + len(v)
    c = np.count_nonzero(a > k / 4)
    n[k] = c + s + a[a > k / 4].size
""",
        names,
        live={"s", "c"},
        rtol=1e-12,
    )
    m = np.array([1, 0, 1], bool)
    assert "len()" in refused("for k in range(3):\n    x = len(a[m])", a=data(3, 4), m=m)
    assert "mask" in refused("for k in range(3):\n    x = np.count_nonzero(a)", a=data(3), np=np)


def test_reductions_of_selected_rows_along_other_axes_are_refused() -> None:
    m = np.array([1, 0, 1], bool)
    for axis in ("-1", "1", "(0, 1)"):
        assert "along an axis" in refused(f"for k in range(3):\n    x = a[m].sum({axis})", a=data(3, 4), m=m)


def test_joining_and_coordinates() -> None:
    names: dict[str, Any] = dict(np=np, a=data(4, 4), b=data(4, 1), o=np.zeros((4, 4)), r=np.zeros((4, 5)))
    check(
        """
for k in range(4):
    r = np.hstack((a + k, b * 2))
    o += np.triu(a, 1) - np.tril(a, -k) + np.eye(4) * k
    o[k] += np.arange(4) + np.diagonal(a) + np.std(a, axis=0)
    a = np.concatenate([a[1:], b.T])
    b[:] = np.stack((b[:, 0], b[:, 0]), axis=1).sum(axis=1, keepdims=True)
    o -= np.clip(a, 1, 2)
""",
        names,
        rtol=1e-12,
    )


def test_rolled() -> None:
    check(
        """
for k in range(4):
    lap = np.roll(u, 1, 0) + np.roll(u, -1, axis=0) + np.roll(u, (2, -9), (1, 0)) - np.roll(u, 0, 1)
    u = u + 0.1 * lap
    v[:] = np.roll(v + k, 3)
    v += np.roll(v, -k0)
    v += np.roll(np.roll(u, 1, (0, 1)), 1, (-1, -1))[0]
""",
        dict(np=np, u=data(4, 6), v=data(6), k0=2),
    )
    assert "is not known" in refused("for k in range(99):\n    x = np.roll(x, k)", np=np, x=data(5))
    assert "without an axis" in refused("for k in range(3):\n    x = np.roll(x, 1)", np=np, x=data(5, 2))


def test_results_in_another_memory_order_are_refused() -> None:
    x = np.asfortranarray(data(3, 4))
    assert "order" in refused("for k in range(3):\n    y = x + k", x=x)
    check("for k in range(3):\n    y = (x + k)[0] * 2", dict(x=x))


def test_results_keep_object_identity() -> None:
    x = data(5)
    traced = check(
        "for k in range(3):\n    y = x\n    y += 1\n    n = 7\n    z = y[:2] * k", dict(x=x, y=x, z=x)
    )
    results = dict(traced.results)
    assert (results["y"].kind, results["y"].name) == ("alias", "x")
    assert (results["n"].kind, results["n"].value, results["k"].value) == ("value", 7, 2)
    assert results["z"].kind == "array"
    traced = check("for k in range(3):\n    y = x[1:]\n    A = B[::-2, 1:3].T", dict(x=x, B=data(5, 4)))
    assert [result.kind for _, result in traced.results[:1]] == ["view"]


def test_data_dependent_indices() -> None:
    at = np.array([[0, 3, -1], [2, 2, 1]])
    names: dict[str, Any] = dict(
        np=np, x=data(5), A=data(4, 5), at=at, y=np.zeros((2, 3)), z=np.zeros((2, 3, 5))
    )
    traced = check(
        """
for i in range(2):
    y[i] = x[at[i]] + A[1, at[i]] * A[:, 1:4][at[i], 2]
    for j in range(3):
        y[i, j] -= x[at[i, j]]
        z[i, j] = A[at[i, j]] + A[at[i, j], ::-1]
        z[i, :, j] += A[at[i], i]
""",
        names,
    )
    names["at"] = at + 3  # beyond the end
    memory = {a.name: names[a.name].copy() for a in traced.region.arrays if a.role in ("in", "inout")}
    with np.errstate(invalid="ignore"):
        interp.run(traced.region, memory)
    with pytest.raises(FloatingPointError), np.errstate(invalid="raise"):
        interp.run(traced.region, memory)
    check("for i in range(2):\n    A[0] = A[at[0, i]] * 2\n    A[at[0, i]] = A[1]", dict(A=names["A"], at=at))
    view = "for i in range(2):\n    r = A[at[0, i]]\n    A[0] = 2.0\n    x[i] = r[0]"
    assert "written" in refused(view, (), A=names["A"], at=at, x=names["x"])


def test_continue() -> None:
    check(
        """
for i in range(8):
    if x[i] > 5:
        continue
    if i == 3:
        s += 1
        if i < 5:
            continue
        s -= 1
    t = x[i]
    x[i] = s + t
""",
        dict(x=data(8), s=np.float64(1), t=np.float64(2)),
    )


def test_products_of_stacks() -> None:
    names: dict[str, Any] = dict(
        a=data(2, 3, 4), b=data(4, 5), c=data(3, 4), d=data(2, 4, 5), v=data(4), s=0.0
    )
    check(
        """
for i in range(2):
    p = a @ b
    q = c @ d
    r = v @ d
    t = a @ v
    u = c[:, :1] @ b[:1]
    s += p.sum() + q.sum() + r.sum() + t.sum() + u.sum() + a[i, i:, :i + 2] @ b[:i + 2, 0] @ c[i:, 0]
""",
        names,
        rtol=1e-12,
    )
    check("for i in range(2):\n    r = x @ x + r", dict(x=data(40, 40), r=data(40, 40)), rtol=1e-12)


def test_permuted_names_of_arrays() -> None:
    loop = """
for k in range(7):
    v[1:-1] = u[1:-1] * 0.5 + u[2:] * k + u[:-2]
    u, v = v, u
    s += u[k]
"""
    for stop in (7, 6, 1):
        names: dict[str, Any] = dict(u=data(9), v=data(9, seed=1), s=np.float64(0))
        traced = check(loop.replace("range(7)", f"range({stop})"), names)
        swapped = stop % 2
        assert dict(traced.results)["u"].name == "uv"[swapped]
    check("for k in range(8):\n    a, b, c = b, c, a\n    a += k * b", dict(a=data(3), b=data(3), c=data(3)))
    assert "names" in refused(
        "while s < 9:\n    a, b = b, a\n    s += a[0]", a=data(3), b=data(3), s=np.float64(0)
    )


def test_few_different_iterations() -> None:
    check("for k in range(6):\n    x[k // 2] += w[k % 3] * 2**k", dict(x=data(5), w=(1.5, 2, 3)))


def test_rows_of_sparse_matrices() -> None:
    r = np.random.default_rng(0)
    dense = r.random((9, 7)) * (r.random((9, 7)) < 0.4)
    dense[3] = 0
    rows = np.cumsum([0, *(dense != 0).sum(axis=1)]).astype("u4")
    columns = np.nonzero(dense)[1].astype("u4")
    names = dict(rows=rows, columns=columns, values=dense[dense != 0], x=data(7), y=np.zeros(9), n=9)
    loop = """
for i in range(n):
    cols = columns[rows[i]:rows[i + 1]]
    vals = values[rows[i]:rows[i + 1]]
    y[i] = vals @ x[cols]
"""
    check(loop, names, live=(), rtol=1e-12)
    np.testing.assert_allclose(serve(trace(request(loop, names, ())), names)["y"], dense @ names["x"])
    assert "written" in refused(loop + "    rows[i] = 0\n", live=(), **names)


def test_flags_and_counters() -> None:
    names: dict[str, Any] = dict(x=data(8), found=False, count=0, last=-1)
    traced = check(
        """
for i in range(8):
    if x[i] > 5:
        found = True
        count += 2
        last = i
""",
        names,
    )
    assert all(result.weak for name, result in traced.results if result.kind == "scalar")
    check("for i in range(8):\n    while 3 * count < i:\n        count += 1\n    x[i] = count", dict(names))


def test_arrays_made_in_each_iteration() -> None:
    loop = """
while d > 1e-9:
    y = x - (x * x - 2.0) / (2.0 * x)
    d = np.max(np.abs(y - x))
    x = y
"""
    check(loop, dict(np=np, x=data(9), d=1.0), live={"x", "d"})
    assert "two names" in refused(loop, live={"x", "y"}, np=np, x=data(9), d=1.0)
    assert "two names" in refused(loop + "    z = y\n    x[0] = z[0]\n", np=np, x=data(9), d=1.0, z=data(9))
