"""``np.errstate`` is captured when a call is recorded and honoured when it runs."""

import sys
import warnings

import numpy as np
import pytest

import dcarray as dc
from dcarray.core import fp_state
from dcarray.core.native import BUILT

MODES = [
    pytest.param({"eager_below": 0, "jit": "off"}, id="interpreted"),
    pytest.param({"eager_below": 0, "jit": "eager"}, id="compiled"),
]


@pytest.fixture(params=MODES, autouse=True)
def mode(request):
    with dc.options(**request.param):
        yield


def said(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return sorted((w.category, str(w.message)) for w in caught)


CASES = [
    lambda x: 1 / x, lambda x: x / x, lambda x: np.log(x - 1), lambda x: np.sqrt(x - 1) + 1,
    lambda x: np.exp(x * 1000), lambda x: (x * 1e308) * 1e10, lambda x: np.power(x, -1.0),
    lambda x: (x * 1e300).astype(np.int32), lambda x: x.astype(int) // (x.astype(int) - 1),
    lambda x: np.where(x > 0, 1 / x, 0), lambda x: np.sum(x / 0), lambda x: x.__itruediv__(x - 1),
    lambda x: (x / (x + 1)).sum(axis=0),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(CASES)))
def test_warnings_are_numpys(k):
    a = np.arange(4.0)
    want = said(lambda: CASES[k](a.copy()))
    got = said(lambda: dc.evaluate(CASES[k](dc.asarray(a.copy()))))
    assert got == want
    assert said(lambda: dc.evaluate(CASES[k](dc.asarray(a.copy())))) == want  # with the plan known


def test_arithmetic_with_a_number_is_never_invalid() -> None:
    """But with zero or an infinity: it is told apart where it is in doubt who has raised an exception."""
    a = np.array([-1.0, np.inf, 4.0, np.nan])
    for number in (2.0, 0.0, np.inf, -np.inf):
        for f in (np.add, np.subtract, np.multiply, np.divide, lambda x, y: y / x, lambda x, y: y - x):

            def call(wrap, f=f, number=number):
                for _ in range(6):
                    dc.evaluate(f(np.sqrt(wrap(a)), number))

            for filters in ("default", "always"):
                found = []
                for wrap in (np.copy, lambda x: dc.asarray(x.copy())):
                    fp_state._registries.clear()
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter(filters)
                        call(wrap)
                    found.append(sorted(str(w.message) for w in caught))
                assert found[0] == found[1]


def test_what_several_have_noted_is_said_once():
    invalid, over = (1, "warn", "invalid value"), (0, "raise", "overflow")
    zero = (1, "warn", "divide by zero")
    assert fp_state.merge_notes([[invalid, over, invalid], [], [zero, invalid]]) == [over, zero, invalid]


def test_warning_names_the_users_line():
    x = dc.asarray(np.zeros(3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = 1 / x  # this line
        dc.evaluate(y)
    assert caught[0].filename == __file__
    with open(__file__) as lines:
        assert "# this line" in lines.readlines()[caught[0].lineno - 1]


def test_state_is_that_of_the_call():
    x = dc.asarray(np.zeros(3))
    with np.errstate(divide="ignore"):
        y = 1 / x
    assert said(lambda: dc.evaluate(y)) == []
    with np.errstate(divide="raise"):
        z = 1 / x
    w = x + 5
    with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        dc.evaluate(z)
    assert np.all(np.asarray(w) == 5) and np.all(np.isinf(np.asarray(z)))  # nothing is lost


def test_mixed_states_in_one_region():
    x = dc.asarray(np.zeros(3))
    with np.errstate(divide="ignore"):
        y = 1 / x
    z = x / x + y
    assert said(lambda: dc.evaluate(z)) == [(RuntimeWarning, "invalid value encountered in divide")]


def test_call():
    heard = []
    x = dc.asarray(np.zeros(3))
    with np.errstate(divide="call", invalid="call", call=lambda text, flag: heard.append((text, flag))):
        dc.evaluate(1 / x)
        assert heard == [("divide by zero", 1)]
        dc.evaluate(x / x)
    assert heard[1:] == [("invalid value", 8)]


@pytest.mark.one_process("a rank prints what its own elements raise")
def test_print(capfd):
    x = dc.asarray(np.zeros(3))
    with np.errstate(divide="print"):
        dc.evaluate(1 / x)
    assert "divide by zero" in capfd.readouterr().err


def test_in_place_updates_are_judged_by_their_old_values():
    a = np.array([1.0, 0.0, 2.0])
    x = dc.asarray(a.copy())
    x *= 2
    np.divide(1, x, out=x)
    x += 1
    assert said(lambda: dc.evaluate(x)) == [(RuntimeWarning, "divide by zero encountered in divide")]
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(np.asarray(x), 1 / (a * 2) + 1)


def test_nan_alone_is_no_error():
    x = dc.asarray(np.array([np.nan, 1.0, np.inf]))
    f = [lambda: x > 1, lambda: np.maximum(x, 0), lambda: x + 1, lambda: x == x, lambda: np.sign(x)]
    for g in f:
        assert said(lambda g=g: dc.evaluate(g())) == []


def _there_and_back(a, b):
    """Steps in place of which some raise: ``b`` is overwritten before it is read, but for its ends."""
    for k in range(4):
        b[1:-1] = a[:-2] * 1e100 + a[2:]
        a[1:-1] = b[:-2] / (b[2:] - b[2:] + k)


def test_steps_in_place_that_raise():
    start = np.linspace(-2.0, 3.0, 50) * 1e60
    a, b = start.copy(), start.copy()
    want = said(lambda: _there_and_back(a, b))
    assert want
    for _ in range(2):
        x, y = dc.asarray(start.copy()), dc.asarray(start.copy())
        assert said(lambda: dc.evaluate(_there_and_back(x, y), x, y)) == want  # noqa: B023
        assert np.asarray(x).tobytes() == a.tobytes() and np.asarray(y).tobytes() == b.tobytes()


exporting = pytest.mark.skipif(
    not BUILT and sys.version_info < (3, 12), reason="before Python 3.12 only C gives a class a buffer"
)


@pytest.mark.parametrize(
    "read", [np.asarray, np.array, pytest.param(memoryview, marks=exporting), lambda y: np.ravel([y])]
)
def test_raised_on_the_way_to_a_plain_array(read):
    """NumPy asks for a buffer first, and forgets why there is none."""
    x = dc.asarray(np.ones(50_000))
    with np.errstate(divide="raise"):
        y = x / 0.0
        with pytest.raises(FloatingPointError, match="divide by zero"):
            read(y)
    assert np.isinf(np.asarray(y)).all() or read is memoryview
    dc.evaluate(x + 1)
    assert np.isinf(np.asarray(y)).all()  # told once


PRODUCTS = [
    lambda a, b: a @ b,
    lambda a, b: a.dot(b),
    lambda a, b: np.dot(a, b[0]),
    lambda a, b: np.dot(a[0], b[:, 0]),
    lambda a, b: np.dot(a, 1e200),
    lambda a, b: np.dot(a, b, out=np.empty_like(a)),
    lambda a, b: np.dot(a.reshape(2, 3, 6), b),
    lambda a, b: np.inner(a, b),
    lambda a, b: np.inner(a.reshape(2, 3, 6), b),
    lambda a, b: np.tensordot(a, b),
    lambda a, b: np.tensordot(a, b, 1),
    lambda a, b: np.linalg.tensordot(a, b),
    lambda a, b: np.cov(a),
    lambda a, b: np.vdot(a, b),
    lambda a, b: np.einsum("ij,jk->ik", a, b),
    lambda a, b: np.einsum("ij,jk->ik", a + a, b) / 0.0,
    lambda a, b: np.einsum("ij,ij->ij", a, b),
    lambda a, b: np.einsum("ij,ij->", a, b),
    lambda a, b: np.einsum("ij->i", a * 1e108),
    lambda a, b: np.einsum("ij,jk->ik", a, b, optimize=True),
    lambda a, b: np.einsum("ij,ij->ij", a, b, optimize=True),
    lambda a, b: np.einsum("ij->i", a * 1e108, optimize=True),
    lambda a, b: np.einsum("ijl,kl->k", np.stack([a, a]) * 1e108, b * 0.0, optimize=True),
    lambda a, b: np.einsum("ij,jk,kl->il", b, b, b),
    lambda a, b: np.einsum("ij,jk,kl->il", b, b, b, optimize=True),
    lambda a, b: np.linalg.norm(a),
    lambda a, b: np.linalg.norm(a * 1e-46),
    lambda a, b: np.linalg.norm(a, axis=0),
]


@pytest.mark.parametrize("k", range(len(PRODUCTS)))
def test_products_warn_as_what_was_called(k: int) -> None:
    product, a, b = PRODUCTS[k], np.full((6, 6), 1e200), np.full((6, 6), 1e200)
    a[:, 0] = 0.0
    want = said(lambda: product(a.copy(), b.copy()))
    for _ in range(2):
        x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
        assert said(lambda: dc.evaluate(product(x, y))) == want  # noqa: B023
    with np.errstate(all="raise"):
        if want:
            with pytest.raises(FloatingPointError, match=want[0][1].split("value ")[-1]):
                dc.evaluate(product(dc.asarray(a), dc.asarray(b)))
        else:
            dc.evaluate(product(dc.asarray(a), dc.asarray(b)))


@pytest.mark.parametrize("product", [np.dot, np.matmul, np.inner, np.vdot])
def test_products_that_are_made_at_once_warn_as_what_was_called(product) -> None:
    a, v = np.full((300, 300), 1e200), np.full(90_000, 1e200)
    with dc.options(eager_below=16384):
        for one, other in [(a, a[0]), (v, v)] if product is not np.vdot else [(v, v)]:
            want = said(lambda: product(one, other))  # noqa: B023
            for _ in range(3):
                x, y = dc.asarray(one), dc.asarray(other)
                assert said(lambda: dc.evaluate(product(x, y))) == want  # noqa: B023
                with np.errstate(all="raise"):
                    if want:
                        with pytest.raises(FloatingPointError, match=want[0][1]):
                            dc.evaluate(product(x, y))
                    else:
                        dc.evaluate(product(x, y))


def test_products_of_one_region_warn_each_for_itself() -> None:
    a = np.full((6, 6), 1e200)
    for _ in range(2):
        x = dc.asarray(a.copy())
        with np.errstate(over="ignore"):
            one = x @ x
        other, third, last = np.inner(x, x), np.einsum("ij,jk->ik", x, x), x * x
        messages = [f"overflow encountered in {name}" for name in ("dot", "multiply")]
        found = said(lambda: dc.evaluate(one, other, third, last))  # noqa: B023
        assert found == [(RuntimeWarning, text) for text in messages]


def test_what_is_silent_says_what_is_pending() -> None:
    x = dc.asarray(np.full((6, 6), 1e200))
    y = x * x
    assert said(lambda: np.vdot(y, x)) == [(RuntimeWarning, "overflow encountered in multiply")]
    with np.errstate(over="raise"):
        z = x * x
        with pytest.raises(FloatingPointError, match="overflow encountered in multiply"):
            np.vdot(z, x)


@pytest.mark.parametrize("depth", [2, 50])
def test_products_are_called_by_numpys_name(depth: int) -> None:
    a, b = np.full((3, depth), 1e200), np.full((depth, 6000), 1e200)
    with np.errstate(over="raise"):
        with pytest.raises(FloatingPointError, match="overflow encountered in matmul"):
            a @ b
        with pytest.raises(FloatingPointError, match="overflow encountered in matmul"):
            dc.evaluate(dc.asarray(a) @ dc.asarray(b))


NOTE = [("here", "warn", "overflow")]
PLACE = ("/folder/of/x.py", 7)


def said_so() -> None:
    fp_state.emit(NOTE, lambda _: "exp", lambda _: PLACE)


def is_silent() -> bool:
    return fp_state.is_silent("overflow encountered in exp", *PLACE)


@pytest.mark.parametrize("action", ["default", "module", "once", "always", "error", "ignore"])
def test_whether_a_warning_would_be_silent(action: str) -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter(action)
        assert is_silent() == (action == "ignore")
        if action != "error":
            said_so()
        assert is_silent() == (action not in ("always", "error"))
        assert len(shown) == (action not in ("error", "ignore"))
    with warnings.catch_warnings():  # which forgets what was said
        warnings.simplefilter("default")
        assert not is_silent()


def test_whether_a_warning_is_silent_depends_on_all_of_a_filter() -> None:
    for ignored, filters in (
        (True, {"message": "overflow"}), (False, {"message": "invalid"}), (True, {"module": ".*of/x$"}),
        (False, {"module": "y"}), (True, {"lineno": 7}), (False, {"lineno": 8}),
        (False, {"category": DeprecationWarning}), (True, {"category": Warning}),
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", **filters)
            assert is_silent() == ignored


def given(filters: str, k: int, steps: int, wrap) -> list[tuple[int, str]]:
    """The warnings of each of some calls at one place, after which the filters change and change back."""
    a = np.arange(4.0)
    outcomes = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(filters)
        for step in range(steps):
            dc.evaluate(CASES[k](wrap(a if step else a + 0.5)))
            if step == steps - 2:
                with warnings.catch_warnings():
                    pass
            outcomes.append((step, len(caught)))
        return outcomes + [(-1, str(w.message)) for w in caught]


@pytest.mark.parametrize("filters", ["default", "always", "ignore", "once", "module"])
@pytest.mark.parametrize("k", [2, 3, 6, 8, 9, 11])
def test_warnings_come_as_often_as_numpys(k: int, filters: str) -> None:
    """Also where it is in doubt who has raised an exception: it is not looked for where nothing is shown."""
    fp_state._registries.clear()
    want = given(filters, k, 14, np.copy)
    assert given(filters, k, 14, lambda a: dc.asarray(a.copy())) == want


@pytest.mark.parametrize("jit", ["eager", "off"])
def test_a_called_function_may_use_what_is_recorded(jit: str) -> None:
    heard: list[object] = []
    x = dc.asarray(np.linspace(-1.0, 1.0, 100_000))
    with (
        dc.options(jit=jit),
        np.errstate(invalid="call", call=lambda *what: heard.extend([*what, (x + y)[0]])),
    ):
        y = x + 1
        z = np.sqrt(x) + y
        assert np.isnan(z[0])
    assert heard == ["invalid value", 8, -1.0]
