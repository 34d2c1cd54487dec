"""Random programs on views, aliases, in-place updates, reductions and exports, against eager NumPy.

The programs are those of ``python -m conformance.fuzz``; a failure prints one as a script.
"""

import numpy as np
import pytest

import dcarray as dc
from conformance.fuzz import options, run
from conformance.programs import Program, difference


@pytest.mark.parametrize(
    ("mode", "first", "count"),
    [("defaults", 0, 350), ("interpreted", 0, 400), ("compiled", 0, 40), ("background", 0, 60)],
)
def test_programs(mode: str, first: int, count: int) -> None:
    with dc.options(eager_below=16384):
        found = list(run(mode, range(first, first + count)))
    assert not found, "\n\n".join(text for _, text in found)


def _program(*body: str, rounds: tuple[tuple[str, ...], ...]) -> Program:
    return Program(body, rounds)


SIZES = tuple(
    (f"v0 = data('f8', ({n},), {n}, {how!r})", f"k0 = {n}.5") for n in (6, 7, 1, 0, 3) for how in "CF"
)
KEPT = {
    "a plan met again at other sizes": _program(
        "v1 = v0 * k0 + v0[::-1]", "v1[1:] += v0[:-1]", "v2 = v1.max(initial=k0)", rounds=SIZES
    ),
    "pending reads and a write through an export": _program(
        "v1 = v0 + 1; e0 = export(v0); e0[...] = 3",
        "v2 = v0 * 2; e0 *= 2",
        rounds=(("v0 = data('f8', (4,), 1)",),),
    ),
    "pending reads and a write through an iterator": _program(
        "v1 = v0 + 1; v0.flat[::2] = 7", rounds=(("v0 = data('f8', (4,), 1)",),)
    ),
    "ravel copies what has gaps": _program(
        "v1 = v0.ravel(); v1[...] = 3", "v2 = v0[::2].ravel(); v2[...] = 4", rounds=SIZES
    ),
    "an array without axes as an index gives a copy": _program(
        "v1 = v0[np.array(1), None]; v1[...] = 9",
        "v2 = v0[np.array(1)]; v2[...] = 8",
        rounds=(("v0 = data('f8', (3, 4), 1)",),),
    ),
    "a result that is not aligned": _program(
        "np.minimum(v0, 3, out=v1, casting='unsafe')",
        rounds=(("v0 = data('f8', (4,), 1)", "v1 = data('u8', (4,), 1, 'odd')"),),
    ),
    "swapped bytes": _program(
        "v1 = np.full_like(v0, 300)", "v2 = v1 + 1", rounds=(("v0 = data('>f8', (4,), 1)",),)
    ),
    "an empty mask": _program("v1 = v0[v0 > 1]", rounds=(("v0 = data('f8', (3, 0, 2), 1)",),)),
    "scalars are arrays to outer": _program(
        "v1 = np.add.outer(v0, 4)", rounds=(("v0 = data('i2', (3,), 1)",),)
    ),
    "what may not be written": _program(
        "v0[..., :, None] = 1", rounds=(("v0 = data('f8', (3,), 1, 'wide')",),)
    ),
}


# Of small memory, but large: a view of it must not be pending on its own.
KEPT |= {
    f"a view of {text}": _program(
        f"v1 = {text}; v2 = np.flip(v1); v2[...] = 1", rounds=(("v0 = data('f8', (40, 501), 28, 'wide')",),)
    )
    for text in (
        "-v0", "np.exp(v0)", "v0.copy()", "v0.astype('f4')", "v0.ravel()", "v0.reshape(501, 40)",
        "v0.conj()", "v0.flatten()", "v0[np.zeros(40, int)]", "v0[wrap(np.zeros(40, int))]", "v0 * 2",
        "v0.T[::2]",
    )
}  # fmt: skip


@pytest.mark.parametrize("mode", ["defaults", "interpreted", "compiled"])
@pytest.mark.parametrize("name", KEPT)
def test_what_programs_found(name: str, mode: str) -> None:
    text = difference(KEPT[name], **options(mode, 1))
    assert text is None, text


def test_plain_arrays_stay_plain_in_our_namespace() -> None:
    p = np.arange(3.0)
    assert type(dc.flip(p)) is np.ndarray and type(dc.broadcast_to(p, (2, 3))) is np.ndarray
    assert dc.add(p, 1, out=p) is p and dc.cumsum(p, out=p) is p
    assert type(dc.add(p, 1)) is dc.ndarray and type(dc.sort(p)) is dc.ndarray


@pytest.mark.parametrize("view", [lambda a: np.split(a, 1)[0], lambda a: np.hsplit(a, 1)[0], np.flip])
def test_views_of_small_arrays_are_small(view):
    with dc.options(eager_below=10):
        x = dc.asarray(np.arange(5.0))
        y = x[:, None] * x  # small, though larger than what counts as small when it is wrapped
        view(y)[...] = 7
        assert np.array_equal(np.asarray(y), np.full((5, 5), 7))
