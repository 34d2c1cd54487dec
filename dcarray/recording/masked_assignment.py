"""Assignments and selections by masks, recorded: ``x[mask] = v`` is ``x = where(mask, v, x)`` in place.

The number of elements of ``x[mask]`` depends on values.  Until it is needed, a selection is a full array of
the shape of ``x`` together with the mask (`dcarray.api.lazy_selection`): ``x[mask] op= v`` and ``x[mask] =
f(x[mask], y[mask])`` then are element-wise, and fuse with the statements around them.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import ref

import numpy as np

from dcarray.core.handle import Handle
from dcarray.core.processes import communicator, simulated
from dcarray.core.store import COMPILED
from dcarray.tiering import policy

from . import fast_path, recorder
from .log import Recording
from .operands import DTYPES, SCALARS, shape_of, user_frame
from .session import LOCK, session
from .value_numbering import is_same_value, is_written

_BOOL = np.dtype(bool)
ONES = {char: dtype.type(1) for char, dtype in DTYPES.items()}
_ONE = np.ones(1, bool)
_IN_VAIN: dict[Any, int] = {}  # how often selections were gathered all the same, by the call site
_MOST_IN_VAIN = 3
_MOST_SITES = 10_000  # that are counted


class Mask:
    """The values of a mask at one point of a recording."""

    __slots__ = ("__weakref__", "_index", "_length", "_rec", "_shape", "_slot", "values")

    def __init__(self, mask: Any) -> None:
        # a copy: the mask may be changed afterwards
        copy = fast_path.elementwise("cast", (mask,))
        self.values = recorder.cast(mask, _BOOL) if copy is None else copy
        rec = getattr(self.values, "_store", None) and self.values._store.rec
        self._rec = ref(rec) if isinstance(rec, Recording) and not rec.done else None
        self._slot = mask._store.slot
        self._shape, self._index = mask._shape, mask._index
        self._length = 0 if rec is None else len(rec.log)

    def of(self, mask: Any) -> bool:
        """Whether a mask array has these values now, as far as the recording shows."""
        rec = self.recording()
        store = mask._store
        if rec is None or mask._shape != self._shape or mask._index != self._index or store.rec is not rec:
            return False
        if store.slot != self._slot:
            return is_same_value(rec, self._slot, store.slot)
        kept = not is_written(rec, [store], self._length)
        if kept:
            self._length = len(rec.log)
        return kept

    def recording(self) -> Recording | None:
        """Return the pending recording that computes these values, if it has all changes of the mask, or
        None."""
        rec = None if self._rec is None else self._rec()
        return rec if rec is not None and not rec.done and rec is session().rec else None

    def along(self, ndim: int) -> Any:
        """Return the mask broadcast to the elements of an array with ``ndim`` axes."""
        v = self.values
        return v if v.ndim == ndim else v[(..., *(None,) * (ndim - v.ndim))]


def mask_of(mask: Any) -> Mask:
    """Return the current values of a mask array; the same object for values known to be the same."""
    known = session().rec.latest_mask
    latest: Mask | None = None if known is None else known()
    if latest is None or not latest.of(mask):
        latest = Mask(mask)
        session().rec.latest_mask = ref(latest)
    return latest


# ---- selections --------------------------------------------------------------------------------------
class Choice:
    """The elements of ``full`` that ``mask`` selects: a pending selection.

    Parameters
    ----------
    full : Handle
        An array that nothing else changes.  ``full`` and ``mask`` are None while a recording runs, if
        ``source`` is enough to compute them.
    mask : Mask
    rest : scalar
        The value of all elements that are not selected.
    source : (Handle, Handle), optional
        The array and the mask, if the selection is ``array[mask]``.
    site
        The call site at which the selection began.

    Attributes
    ----------
    folded : bool
        Whether a reduction of the selection has been recorded.
    """

    __slots__ = ("_length", "folded", "full", "mask", "rest", "site", "source")

    def __init__(
        self, full: Any, mask: Mask, rest: Any, site: Any, source: tuple[Any, Any] | None = None
    ) -> None:
        self.site = site
        self.folded = False
        self.full = full
        self.mask: Any = mask
        self.rest = rest
        self.source = source
        self._length = len(session().rec.log)

    def is_unchanged(self, rec: Recording) -> bool:
        """Whether the array and the mask in ``source`` are unchanged since the selection was made."""
        if self.source is None or self.mask.recording() is not rec:
            return False
        stores = [x._store for x in self.source]
        if any(store.rec is not rec for store in stores):
            return False
        return not is_written(rec, stores, self._length)


def select(mask: Mask, x: Any, other: Any) -> Any:
    """Return ``where(mask, x, other)``; the scalar ``other`` has the dtype of ``x``."""
    return recorder.elementwise("where", (mask.along(x.ndim), x, other))


def note_gathered(choice: Choice) -> None:
    """Note that a pending selection had to be gathered; if that is frequent, its call site gathers at
    once."""
    if len(_IN_VAIN) > _MOST_SITES:
        _IN_VAIN.clear()
    _IN_VAIN[choice.site] = _IN_VAIN.get(choice.site, 0) + (2 if choice.folded else 1)


def note_served(choice: Choice, times: int = _MOST_IN_VAIN) -> None:
    """Note that a selection saved work, ``times`` times, before it was gathered."""
    _IN_VAIN[choice.site] = max(_IN_VAIN.get(choice.site, 0) - times, 0)


def note_reduced(choice: Choice) -> None:
    """Note that a selection was reduced; that saves work unless it has to be gathered later."""
    if not choice.folded:
        choice.folded = True
        note_served(choice, 1)


def is_mask(x: Any, key: Any) -> bool:
    """Whether a key is a mask of the first axes of ``x``."""
    if isinstance(key, Handle):
        dtype, shape = key.dtype, shape_of(key)
    elif type(key) is np.ndarray:
        dtype, shape = key.dtype, key.shape
    else:
        return False
    return dtype == _BOOL and len(shape) > 0 and x._shape[: len(shape)] == shape


def choose(x: Any, key: Any, again: Choice | None = None) -> Choice | None:
    """Return ``x[key]`` as a pending selection (``again``: an equal earlier one); None if it cannot be
    one."""
    if not isinstance(key, Handle) or key._small is not None or key._store.char != "?" or not is_mask(x, key):
        return None
    store = x._store
    size = math.prod(x._shape)
    few = policy.eager(size, policy.PASS)
    if few and again is None and communicator() is None and policy.idle((x, key)):
        return None  # with nothing to be fused with, they are gathered before a fold is recorded
    site = _site() if again is None else again.site
    if site is None:
        return None
    if not store.char or not size or store.is_exported() or key._store.is_exported():
        return None
    if policy.eager_call(size, (x, key)):
        return None
    with LOCK:
        mask = mask_of(key)
        one = ONES[store.char]
        choice = Choice(select(mask, x, one), mask, one, site, (x, key))
        choice.folded = again is not None and again.folded
        return choice


def _site() -> Any:
    """Return the call site of a selection by a mask; None if earlier selections made there were slower than
    NumPy's."""
    frame = user_frame(3)
    code, rank = frame.f_code, simulated()  # each simulated rank learns for itself, and so all alike
    # for all ranks to learn alike, nothing may depend on addresses
    key = id(code) if communicator() is None else (code.co_filename, code.co_name, code.co_firstlineno)
    site = key, frame.f_lasti, None if rank is None else (rank.rank, rank.size)
    return site if _IN_VAIN.get(site, 0) < _MOST_IN_VAIN else None


# ---- assignments -------------------------------------------------------------------------------------
def assign(x: Any, key: Any, value: Any) -> bool:
    """Record ``x[key] = value``; False if it cannot be recorded."""
    if not is_mask(x, key) or not x._store.char or x._readonly:
        return False
    ndim = len(shape_of(key))
    with LOCK:  # or another thread may gather the selection meanwhile
        if getattr(type(value), "_choice", None) is not None:
            return _assign_choice(x, key, value._choice)
    given = _convert(x, value, x._shape[ndim:])
    if given is None:
        return False
    if ndim < len(x._shape):
        key = key[(..., *(None,) * (len(x._shape) - ndim))]
    return _write(x, key, given)


def _write(x: Any, key: Any, value: Any) -> bool:
    known = isinstance(value, (Handle, np.generic))
    if known and fast_path.elementwise("where", (key, value, x), x) is not None:
        return True
    return recorder.assign_where(x, key, value)


def _assign_choice(x: Any, key: Any, choice: Choice) -> bool:
    if not isinstance(key, Handle) or key._small is not None or choice.full.shape != x._shape:
        return False
    with LOCK:
        if not choice.mask.of(key):
            return False
        note_served(choice)
        full = choice.full
        if full.dtype != x.dtype:
            if x.dtype.kind != "c" == full.dtype.kind:
                return False
            one = ONES[full.dtype.char]
            full = recorder.cast(select(choice.mask, full, one), x.dtype)
        return _write(x, choice.mask.along(len(x._shape)), full)


def _convert(x: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a value that can be assigned to ``shape`` elements of ``x``: a scalar is converted to its dtype,
    an array stays as it is.  None if NumPy has to do the assignment."""
    if type(value) in SCALARS or (isinstance(value, np.generic) and _safe(value.dtype, x.dtype)):
        one = np.empty(1, x.dtype)
        one[_ONE] = value  # raises NumPy's errors
        return one[0]
    if not isinstance(value, Handle) and type(value) is not np.ndarray:
        return None
    given = shape_of(value)
    fits = len(given) <= len(shape) and all(
        a in (1, b) for a, b in zip(given[::-1], shape[::-1], strict=False)
    )
    return value if fits and _safe(value.dtype, x.dtype) else None


def _safe(source: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    return source.char in COMPILED and np.can_cast(source, dtype, "safe")
