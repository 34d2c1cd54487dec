"""Programs have a version for sizes for which products are worth it, and one for all others."""

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.ir.analysis import versions
from dcarray.ir.nodes import Call
from dcarray.ir.statements import all_statements
from dcarray.lowering.targets import get

HEAD = "import dcarray as dc, numpy as np\nN, M, K = dc.symbol('N'), dc.symbol('M'), dc.symbol('K')\n"
MATRIX = "dc.types.float64"
SOURCES = {
    "product": f"""def f(c: {MATRIX}[N, M], a: {MATRIX}[N, K], b: {MATRIX}[K, M]):
        for i in range(N):
            for j in range(M):
                for k in range(K):
                    c[i, j] += a[i, k] * b[k, j]
    """,
    "two products": f"""def f(c: {MATRIX}[N, M], a: {MATRIX}[N, K], b: {MATRIX}[K, M], d: {MATRIX}[N, N]):
        for i in range(N):
            for j in range(M):
                for k in range(K):
                    c[i, j] -= 2.0 * a[i, k] * b[k, j]
        for i in range(N):
            for j in range(i, N):
                for k in range(K):
                    d[j, i] += a[i, k] * a[j, k]
    """,
}


@pytest.fixture(autouse=True)
def eagerly(monkeypatch):
    monkeypatch.setattr(versions, "MIN_WORK", 700)
    with dc.options(jit="eager", cache_dir=None):
        yield


def program_of(name):
    return dc.program(written(HEAD + SOURCES[name]))


def serves(program):
    """Which version has served the last call."""
    _, code, plan = program._last
    return "general" if plan._loaded is code.general else "some"


@pytest.mark.parametrize("name", SOURCES)
def test_sizes_decide(name):
    program = program_of(name)
    program.compile()
    rng = np.random.default_rng(0)
    seen = set()
    for n, m, k in [
        (9, 9, 9), (4, 4, 4), (8, 9, 10), (1, 1, 700), (1, 1, 699), (0, 5, 9), (20, 20, 20), (7, 7, 0),
    ]:  # fmt: skip
        arrays = [rng.random(shape) for shape in ((n, m), (n, k), (k, m), (n, n))]
        arrays = arrays[: program.written.__code__.co_argcount]
        want = [a.copy() for a in arrays]
        program.written.__globals__.update(N=n, M=m, K=k)
        program.written(*want)
        program.written.__globals__.update(N=dc.symbol("N"), M=dc.symbol("M"), K=dc.symbol("K"))
        for _ in range(2):
            got = [a.copy() for a in arrays]
            program(*got)
            for x, y in zip(got, want, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12)
        work = n * m * k + (n * n * k if name == "two products" else 0)
        assert serves(program) == ("some" if work >= 700 else "general")
        seen.add(serves(program))
    assert seen == {"some", "general"}


def test_the_general_version_has_no_products():
    region = program_of("two products").region()

    def calls(general):
        version = versions.Version(region, general)
        with version:
            final = get("cpu").pipeline(2).run(region)
        return sum(isinstance(s, Call) for s in all_statements(final.body)), version.relations(final)

    some, relations = calls(False)
    assert some == 2 and [str(r) for r in relations] == ["K*M*N+K*N*N >= 700"]
    assert calls(True) == (0, [])


def test_explain_has_both():
    text = program_of("product").explain()
    assert "after the passes, for N*M*K >= 700:" in text or "after the passes, for K*M*N >= 700:" in text
    first, _, second = text.partition("for other sizes:")
    assert "blas.matmul" in first and "blas.matmul" not in second and "for k in range(0, K, 1)" in second


def test_products_with_vectors_have_one_version():
    source = f"""def f(y: {MATRIX}[N], a: {MATRIX}[N, K], x: {MATRIX}[K]):
        for i in range(N):
            for k in range(K):
                y[i] += a[i, k] * x[k]
    """
    program = dc.program(written(HEAD + source)).compile()
    assert "for other sizes" not in program.explain()
    (code,) = program._compiled.values()
    assert code.general is code._first


def test_temporaries_of_all_iterations_are_bounded(monkeypatch):
    """They are larger than all arrays that are given: above the limit the loop keeps one row."""
    source = f"""def f(out: {MATRIX}[N], x: {MATRIX}[N], y: {MATRIX}[M]):
        for i in range(N):
            t = np.exp(y * x[i])
            out[i] = (t / t.sum()).max()
    """
    monkeypatch.setattr(versions, "MAX_ELEMENTS", 100)
    program = dc.program(written(HEAD + source)).compile()
    assert "100" in program.explain()
    rng = np.random.default_rng(0)
    for n, m in [(9, 11), (10, 10), (11, 10), (3, 50), (1, 100)]:
        out, x, y = (rng.random(k) for k in (n, n, m))
        want = np.exp(x[:, None] * y)
        program(out, x, y)
        np.testing.assert_allclose(out, (want / want.sum(axis=1)[:, None]).max(axis=1), rtol=1e-12)
        assert serves(program) == ("some" if n * m <= 100 else "general")


def test_a_program_that_is_not_compiled_makes_what_it_needs():
    program = program_of("product")
    a = np.ones((20, 20))
    program(a.copy(), a, a)
    (code,) = program._compiled.values()
    assert "general" not in vars(code)
    program(a[:2, :2].copy(), a[:2, :2].copy(), a[:2, :2].copy())
    assert "general" in vars(code)
