"""The methods of arrays: views and copies, NumPy's functions as methods, sorting in place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from dcarray.core import counters, strided_views, window
from dcarray.core.device_backend import device_backend
from dcarray.core.errors import BAD_CALL
from dcarray.core.handle import Handle, export, large, small
from dcarray.core.processes import communicator
from dcarray.core.store import Store
from dcarray.core.strides import in_c_order, reshaped_strides, strides_of
from dcarray.recording import operands, recorder

from .attributes import Attributes, asking, in_numpy, plain_argument
from .flags import let_write


def _method(name: str, fresh: bool = True, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A method that calls NumPy's function of the same name, which dispatches to the implementation here.

    With ``fresh`` the result never shares memory with the array.  ``function`` is used in place of NumPy's if
    that takes the array at another position.
    """

    def method(self: Methods, *args: Any, **kwargs: Any) -> Any:
        a = self._small
        if a is None:
            if fresh:
                a = self._eager_view()
            if a is None and not self._store.char:  # such methods take more arguments than the functions
                operands.note_fallback(name, (self,))
                a = self._evaluated()
        if a is not None:
            plain = [plain_argument(self, v) for v in args]
            named = {k: plain_argument(self, v) for k, v in kwargs.items()}
            result = getattr(a, name)(*plain, **named)
            if result is a:
                return self
            for p, given in zip((*plain, *named.values()), (*args, *kwargs.values()), strict=True):
                if p is result:
                    return given
            return self._adopt(result)
        try:
            return call(self, *args, **kwargs)
        except BAD_CALL:
            pass
        return in_numpy(self, name, args, kwargs)

    call: Callable[..., Any] = function or getattr(np, name)
    method.__name__ = name
    return method


def _clip(a: Any, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """Limit values to an interval; unlike in `numpy.clip`, either bound may be missing even as a positional
    argument."""
    return np.clip(a, min, max, out, **kwargs)


def _choose(a: Any, *choices: Any, **kwargs: Any) -> Any:
    """Choose from arrays, which a method also takes one by one; see `numpy.choose`."""
    return np.choose(a, choices if len(choices) > 1 else choices[0], **kwargs)


def _compress(a: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return np.compress(condition, a, axis, out)


def _numpy_method(name: str) -> Callable[..., Any]:
    """Return a method that NumPy runs on the evaluated memory."""

    def method(self: Methods, *args: Any, **kwargs: Any) -> Any:
        a = self._writable()
        result = self._adopt(getattr(a, name)(*map(operands.plain_of, args), **kwargs))
        if self._small is None and self._small_view is None:
            counters.note(f"numpy.ndarray.{name}", a.nbytes, "numpy")
        return result

    method.__name__ = name
    return method


_HERE = np.empty(0)


class Methods(Attributes):
    """The methods of an array; its operators and protocols are in `dcarray.api.array`."""

    __slots__ = ()

    # ---- shapes ------------------------------------------------------------------------------------
    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """See `numpy.reshape`; a view where NumPy gives one."""
        if self._small is not None and copy is None:
            return self._derive(self._small.reshape(*shape, order=order))
        if len(shape) == 1:
            vector = isinstance(shape[0], (np.ndarray, Handle)) and shape[0].ndim == 1
            shape = tuple(shape[0]) if vector or isinstance(shape[0], (tuple, list)) else shape
        odd = bool in map(type, shape)  # NumPy takes bools for no integers
        if self._small is None and order in ("C", None) and not copy and not odd:
            wanted = window.infer_shape(tuple(operator.index(n) for n in shape), self.size)
            view = None if wanted is None else self._reshaped(wanted)
            if view is not None:
                return view
        if self._small is None and order == "F" and not copy and communicator() is not None:
            wanted = window.infer_shape(tuple(operator.index(n) for n in shape), self.size)
            if wanted is not None:
                return self.T.reshape(wanted[::-1]).T
        a = np.reshape(self._evaluated(), shape, order=order, copy=copy)
        if order not in ("C", None):
            operands.note_fallback("reshape", (self,))
        return self._derive(a)

    def _reshaped(self, shape: tuple[int, ...]) -> Any:
        """Return a reshape without evaluating the array; None if that is impossible."""
        index = window.reshape_unit_axes(self._shape, self._window(), shape)
        if index is not None:
            return self._view(shape, index)
        store, head = self._store, self._store.family
        if not store.size or not store.char:
            return None
        fresh = self._index is None and head.mem is None and store.strides is None
        if not fresh and not self.size:
            return None
        if not fresh and reshaped_strides(self._shape, strides_of(self), shape) is None:
            return self.copy().reshape(shape)
        if communicator() is not None:
            return strided_views.reinterpret(self, shape)
        if self._index is not None or (store.dtype != head.dtype if fresh else store.strides is not None):
            return None
        other = Store(shape, store.dtype, head)
        if not fresh:
            if store.mem is None:
                return None
            other.bind(store.mem.reshape(shape))
        x = large(type(self), other, shape, None)
        x._readonly = self._readonly
        return x

    def transpose(self, *axes: Any) -> Any:
        """See `numpy.transpose`; always a view."""
        if self._small is not None:
            return small(type(self), self._small.transpose(*axes))
        n, given = len(self._shape), axes[0] if len(axes) == 1 else axes or None
        order = tuple(range(n))[::-1] if given is None else normalize_axis_tuple(given, n)
        if len(order) != n or given is True or given is False:
            raise ValueError(given)
        self._store.permuted |= n > 1
        return self._view(*window.transpose(self._shape, self._window(), order))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """See `numpy.swapaxes`; always a view."""
        n = self.ndim
        i, j = normalize_axis_index(axis1, n, "axis1"), normalize_axis_index(axis2, n, "axis2")
        order = list(range(n))
        order[i], order[j] = order[j], order[i]
        return self.transpose(*order) if n else self._view(self.shape, ())

    def _view(self, shape: tuple[int, ...], index: window.Index) -> Any:
        if self._small is not None:
            return small(type(self), self._small.view())
        x = large(type(self), self._store, shape, index)
        x._readonly = self._readonly
        return x

    def ravel(self, order: Any = "C") -> Any:
        """See `numpy.ravel`."""
        if self._small is not None:
            return self._derive(self._small.ravel(order))
        straight = in_c_order(self)
        if order in ("C", None) or (order in ("A", "K") and straight):
            return (self if straight else self.copy()).reshape(-1)
        return self.T.ravel() if order == "F" else self._derive(self._evaluated().ravel(order))

    def flatten(self, order: Any = "C") -> Any:
        if order in ("C", None):
            return self.copy().reshape(-1)
        if order == "F" and self._small is None:
            return self.T.copy().reshape(-1)
        return self._adopt(self._evaluated().flatten(order))

    def squeeze(self, axis: Any = None) -> Any:
        """See `numpy.squeeze`; always a view."""
        if self._small is not None:
            return small(type(self), self._small.squeeze(axis))
        return self.reshape(np.squeeze(np.broadcast_to(np.int8(0), self.shape), axis=axis).shape)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        # libraries write a.view(type(b)) to keep subclasses
        if (not args and not kwargs) or (args == (type(self),) and not kwargs):
            return self._view(self.shape, self._window() if self._small is None else ())
        if self._small is None and communicator() is not None and len(args) == 1 and not kwargs:
            view = self._as_dtype(args[0])
            if view is not None:
                return view
        classes = [one for one in (*args, *kwargs.values()) if isinstance(one, type)]
        if any(issubclass(one, np.ndarray) and one is not np.ndarray for one in classes):
            return export(self).view(*args, **kwargs)  # keeps its class, and may be written
        return self._derive(self._evaluated().view(*args, **kwargs))

    def _as_dtype(self, given: Any) -> Any:
        """Return a large array's bytes as elements of another dtype, without evaluating it; None if that is
        impossible."""
        if isinstance(given, type) and issubclass(given, np.ndarray):
            return None
        dtype, shape = np.dtype(given), self.shape
        if not dtype.itemsize:
            return None
        several = self.itemsize // dtype.itemsize
        if several > 1:
            if not shape or strides_of(self)[-1] != 1:
                return None
            shape = (*shape[:-1], shape[-1] * several)
        return strided_views.reinterpret(self, shape, dtype)

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True,
        device: Any = None,
    ) -> Any:  # fmt: skip
        if self._small is not None:
            return self._derive(self._small.astype(dtype, order, casting, subok, copy))
        if not self._store.char:
            operands.note_fallback("astype", (self,))
            return self._derive(self._evaluated().astype(dtype, order, casting, subok, copy))
        dtype = np.dtype(dtype)
        rule = casting in ("no", "equiv", "safe", "same_kind", "unsafe")  # else NumPy looks at the values
        if rule and not np.can_cast(self.dtype, dtype, casting):
            np.empty(0, self.dtype).astype(dtype, casting=casting)
        usual = rule and type(copy) is bool
        if (
            not usual
            or order == "A"
            or (order in ("C", "F") and not copy)
            or not isinstance(dtype.type, type)
        ):
            a = self._evaluated().astype(dtype, order=order, casting=casting, copy=copy)
            return self._derive(a)
        return recorder.cast(self, dtype, copy=copy, order=order if order in ("C", "F") else "K")

    def copy(self, order: Any = "C") -> Any:
        if self._small is not None:
            return self._derive(self._small.copy(order))
        if order in ("C", None):
            a = self._eager_view()
            if a is not None:
                return self._adopt(a.copy())
            return recorder.cast(self, self.dtype, order="C")
        return np.copy(self, order)

    def fill(self, value: Any) -> None:
        if np.ndim(value):
            self._writable().fill(operands.plain_of(value))
        else:
            self.__setitem__(Ellipsis, value)

    def conjugate(self, *args: Any, **kwargs: Any) -> Any:
        """See `numpy.conjugate`; the array itself if its dtype is not complex."""
        if not args and not kwargs and self.dtype.kind in "biuf":
            return self
        return self._conjugate(*args, **kwargs)

    conj = conjugate

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """See `numpy.ndarray.resize`.  Views made before stay views of the old memory."""
        operator.index(refcheck)  # other references to the memory keep it alive
        if shape in ((), (None,)):
            return
        if self._small is None and communicator() is not None and in_c_order(self) and self.base is None:
            wanted = shape[0] if len(shape) == 1 else shape
            if np.prod(wanted) == self.size and np.min(wanted) >= 0:
                self.shape = wanted  # the same memory: views of it stay views
            else:
                self._become(self._resized(wanted))
            return
        a = self._writable()
        order: Any = "F" if a.flags.fnc else "C"
        new = np.zeros(shape[0] if len(shape) == 1 else shape, a.dtype, order)
        if not a.flags.forc:
            raise ValueError("resize only works on single-segment arrays")
        if new.size == a.size:
            self.shape = new.shape
            return
        if self.base is not None:
            raise ValueError("cannot resize this array: it does not own its data")
        n = min(new.size, a.size)
        new.reshape(-1, order=order)[:n] = a.reshape(-1, order=order)[:n]
        new.flags.writeable = a.flags.writeable
        self._become(self._adopt(new))

    def _resized(self, shape: Any) -> Any:
        """Return a copy of a large array in C order with fewer elements, or zeros after them."""
        new = np.zeros_like(self, shape=shape)
        assert isinstance(new, Handle)
        n = min(new.size, self.size)
        new.reshape(-1)[:n] = self.reshape(-1)[:n]
        return new

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        if self._small is not None or not self._store.char:
            self._evaluated().setflags(write=write, align=align, uic=uic)
            return
        self._evaluated().setflags(align=align, uic=uic)
        if write is not None:
            let_write(self, bool(write))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Return the array itself if it is on the device ``device``, else a copy there.

        Parameters
        ----------
        device : str
            One of `dcarray.devices`, such as ``"cpu"`` or ``"opencl:0"``.
        stream : None
            Only None is allowed: devices do their work in order.

        Raises
        ------
        ValueError
            If there is no such device; the message names those there are.
        """
        if stream is not None or not isinstance(device, str) or device == self.device == "cpu":
            _HERE.to_device(device, stream=stream)  # NumPy's errors
            return self
        return device_backend().moved(self, device)

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        if self._small is None and communicator() is not None and axis is not None and not self._readonly:
            self[...] = np.sort(self, axis, kind, order, stable=stable)
        else:
            self._sort(axis, kind, order, stable=stable)

    def partition(self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> None:
        if self._small is None and communicator() is not None and axis is not None and not self._readonly:
            self[...] = np.partition(self, kth, axis, kind, order)
        else:
            self._partition(kth, axis, kind, order)

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        if self._small is None and communicator() is not None and not self._readonly:
            write: Any = np.put
            write(self, indices, values, mode)
        else:
            self._put(indices, values, mode)

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """See `numpy.searchsorted`."""
        if type(v) is type(self) and v._small is None:
            return np.searchsorted(self, v, side, sorter)  # the number of values looked up decides
        return self._searchsorted(v, side, sorter)

    # ---- functions as methods ----------------------------------------------------------------------
    all = _method("all")
    any = _method("any")
    argmax = _method("argmax")
    argmin = _method("argmin")
    argpartition = _method("argpartition")
    argsort = _method("argsort")
    choose = _method("choose", function=_choose)
    clip = _method("clip", function=_clip)
    compress = _method("compress", function=_compress)
    cumprod = _method("cumprod")
    cumsum = _method("cumsum")
    diagonal = _method("diagonal", fresh=False)
    dot = _method("dot")
    max = _method("max")
    mean = _method("mean")
    min = _method("min")
    nonzero = _method("nonzero")
    prod = _method("prod")
    repeat = _method("repeat")
    round = _method("round")
    std = _method("std")
    sum = _method("sum")
    take = _method("take")
    trace = _method("trace")
    var = _method("var")
    _conjugate = _method("conjugate")
    _searchsorted = _method("searchsorted")
    _sort = _numpy_method("sort")
    _partition = _numpy_method("partition")
    _put = _numpy_method("put")
    byteswap = _numpy_method("byteswap")
    setfield = _numpy_method("setfield")
    getfield = _numpy_method("getfield")


_OWN = """
astype conj conjugate copy fill flatten partition put ravel reshape searchsorted setflags sort squeeze
swapaxes transpose view
"""
for _name in _OWN.split():
    setattr(Methods, _name, asking(vars(Methods)[_name]))
for _name, _member in (*vars(Methods).items(), *vars(Attributes).items()):
    if not _name.startswith("_") and hasattr(np.ndarray, _name):
        _member.__doc__ = _member.__doc__ or f"See `numpy.ndarray.{_name}`."
    if hasattr(_member, "__code__") and hasattr(np.ndarray, _name):
        _member.__wrapped__ = getattr(np.ndarray, _name)  # whose signature is the method's
