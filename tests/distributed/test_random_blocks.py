"""Windows of a random array are bit for bit those of the whole array."""

import copy
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.distributed import random_blocks

BITS = [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox]
DRAWS = [
    ("random", (), {}), ("random", (), {"dtype": np.float32}), ("uniform", (-2, 3.5), {}),
    ("triangular", (0, 1, 4), {}), ("standard_exponential", (), {"method": "inv"}),
    ("standard_exponential", (), {"method": "inv", "dtype": "f4"}),
    ("integers", (0, 8), {}), ("integers", (-5, 11), {"dtype": np.int32}), ("integers", (1 << 40,), {}),
    ("integers", (1 << 32,), {"dtype": "u8"}), ("integers", (-(1 << 63), 1 << 63), {}),
    ("integers", (63,), {"endpoint": True, "dtype": "u1"}), ("integers", (256,), {"dtype": "u1"}),
    ("integers", (0, 1024), {"dtype": np.int16}), ("integers", (0, 2), {"dtype": bool}),
    ("integers", (3, 4), {}), ("integers", (0, 1 << 32), {"dtype": np.uint32}),
]  # fmt: skip


def whole(generator, method, shape, args, kwargs):
    return getattr(generator, method)(*args, size=shape, **kwargs)


def generator(kind, before=0):
    g = np.random.Generator(kind(11))
    for k in range(before):  # words of both lengths, so that a half may wait and blocks be begun
        g.random(k % 3, dtype=np.float32)
        g.random(k)
    return g


def agree(a, b):
    """Do two generators go on alike, with words of both lengths?"""
    return a.random(3, "f4").tolist() == b.random(3, "f4").tolist() and a.random() == b.random()


@pytest.mark.parametrize("kind", BITS)
@pytest.mark.parametrize(("method", "args", "kwargs"), DRAWS)
def test_uneven_blocks(kind, method, args, kwargs):
    for before in range(7):
        g = generator(kind, before)
        want = whole(g, method, (13, 7), args, kwargs)
        cuts = ([0, 1, 6, 13], [0, 4, 7])
        got = np.empty_like(want)
        for (a, b), (c, d) in itertools.product(*(itertools.pairwise(cut) for cut in cuts)):
            own = generator(kind, before)
            part = dc.random.block(own, method, (13, 7), (slice(a, b), slice(c, d)), *args, **kwargs)
            assert type(part) is dc.ndarray and part.dtype == want.dtype
            got[a:b, c:d] = part
            assert agree(own, copy.deepcopy(g))
        assert np.array_equal(got, want)


slices = st.builds(
    slice,
    st.none() | st.integers(-9, 9),
    st.none() | st.integers(-9, 9),
    st.none() | st.integers(-4, 4).filter(bool),
)


@settings(derandomize=True, deadline=None, max_examples=120)
@given(
    st.sampled_from(BITS), st.sampled_from(DRAWS), st.integers(0, 6),
    st.lists(st.integers(0, 8), max_size=3), st.data(), st.sampled_from([0, 2, 10, 4000]),
    st.sampled_from([1, 20, 1 << 20]),
)  # fmt: skip
def test_windows(kind, draw, before, shape, data, skip, most):
    method, args, kwargs = draw
    keys = data.draw(st.lists(slices, max_size=len(shape)))
    keys = [data.draw(st.integers(-n, n - 1)) if n and data.draw(st.booleans()) else k
            for n, k in zip(shape, keys, strict=False)]  # fmt: skip
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(keys)))
        keys[place:] = [...] if place < len(shape) - 1 else [..., *keys[place:]]
    g, own = generator(kind, before), generator(kind, before)
    want = whole(g, method, tuple(shape), args, kwargs)[tuple(keys)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_blocks, "_SKIP", skip)
        patch.setattr(random_blocks, "_MOST_DRAWN_AT_ONCE", most)
        got = dc.random.block(own, method, shape, tuple(keys), *args, **kwargs)
    assert type(got) is (dc.ndarray if isinstance(want, np.ndarray) else type(want))
    assert got.shape == want.shape and got.dtype == want.dtype and np.array_equal(np.asarray(got), want)
    assert agree(own, g)


def test_small_windows_draw_little(monkeypatch):
    drawn = []
    fill = random_blocks._fill

    def counting(out, ranges, strides, origin, draw):
        def counted(first, count):
            drawn.append(count)
            return draw(first, count)

        fill(out, ranges, strides, origin, counted if draw.__name__ != "counted" else draw)

    monkeypatch.setattr(random_blocks, "_fill", counting)
    shape = (10**6, 10**9, 1000)
    part = dc.random.block(np.random.default_rng(1), "random", shape, np.s_[10:13, ::400_000_000, 5:905:300])
    assert part.shape == (3, 3, 3) and sum(drawn) < 27 * 1000
    again = np.random.default_rng(1)
    again.bit_generator.advance(math.prod(shape[1:]) * 12 + 800_000_000 * 1000 + 605)
    assert part[2, 2, 2] == again.random()


def test_windows_larger_than_what_is_drawn_at_once(monkeypatch):
    monkeypatch.setattr(random_blocks, "_MOST_DRAWN_AT_ONCE", 1000)
    want = np.random.default_rng(3).random((200, 150))
    got = dc.random.block(np.random.default_rng(3), "random", (200, 150), np.s_[::-3, 1::2])
    assert np.array_equal(np.asarray(got), want[::-3, 1::2])


def test_wrapped_generators_and_default_window():
    g = dc.random.default_rng(5)
    got = dc.random.block(g, "random", 100)
    h = np.random.default_rng(5)
    assert np.array_equal(np.asarray(got), h.random(100)) and g.random() == h.random()
    assert (
        dc.random.block(dc.random.Generator(np.random.Philox(2)), "random", [4], 2)
        == (np.random.Generator(np.random.Philox(2)).random(4)[2])
    )


def test_unsupported_methods_and_windows():
    g = np.random.default_rng(1)
    before = g.bit_generator.state
    for method in ("normal", "standard_normal", "poisson", "exponential", "standard_exponential", "choice"):
        with pytest.raises(ValueError, match=r"varying number .* random, uniform, triangular"):
            dc.random.block(g, method, 10, slice(5))
    with pytest.raises(ValueError, match="length 10 take a varying"):
        dc.random.block(g, "integers", 10, slice(5), 0, 10)
    with pytest.raises(ValueError, match="scalars"):
        dc.random.block(g, "uniform", 2, slice(1), [0, 1], 2)
    with pytest.raises(ValueError, match="low >= high"):
        dc.random.block(g, "integers", 10, slice(5), 8, 8)
    with pytest.raises(AttributeError):
        dc.random.block(g, "rand", 10)
    with pytest.raises(TypeError, match="multiple values"):
        dc.random.block(g, "random", 10, slice(5), size=3)
    with pytest.raises(TypeError, match="Unsupported dtype"):
        dc.random.block(g, "random", 10, dtype="f2")
    with pytest.raises(ValueError, match="negative"):
        dc.random.block(g, "random", (2, -1))
    for window in (7, (slice(1), 0), (..., ...), None, [1, 2], True):
        with pytest.raises(IndexError):
            dc.random.block(g, "random", 5, window)
    for kind in (np.random.MT19937, np.random.SFC64):
        with pytest.raises(TypeError, match="PCG64, PCG64DXSM and Philox can"):
            dc.random.block(np.random.Generator(kind(1)), "random", 5)
    with pytest.raises(TypeError, match="Generator is needed"):
        dc.random.block(dc.random.RandomState(1), "random", 5)
    assert g.bit_generator.state == before


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "Philox"])
def test_bit_generators_advance_and_jump(kind):
    ours, plain = getattr(dc.random, kind)(5), getattr(np.random, kind)(5)
    g, h = dc.random.Generator(ours), np.random.Generator(plain)
    for bits in (ours, plain):
        bits.advance(1000)
    assert np.array_equal(np.asarray(g.random(5)), h.random(5))
    g, h = dc.random.Generator(ours.jumped(3)), np.random.Generator(plain.jumped(3))
    assert np.array_equal(np.asarray(g.normal(size=5)), h.normal(size=5))
