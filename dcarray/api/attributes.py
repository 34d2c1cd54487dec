"""The attributes of arrays, and methods that return their elements: as lists, bytes, files, buffers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

import numpy as np

from dcarray.core import config, strided_views, window
from dcarray.core.backend import backend
from dcarray.core.devices import common_device, name_of
from dcarray.core.errors import BAD_CALL
from dcarray.core.handle import Handle, NDArray, adopt, derive, export, large, small
from dcarray.core.processes import communicator
from dcarray.core.store import Store
from dcarray.core.strides import reshaped_strides, strides_of
from dcarray.recording import operands
from dcarray.recording.session import session

from .buffers import refusal, survives
from .flags import Flags
from .flat import Flat

if TYPE_CHECKING:
    from dcarray.comm.layout.layouts import Layout

_FORMAT = 4  # the buffer flag of consumers that ask for the element format
_BASES: WeakValueDictionary[int, Any] = WeakValueDictionary()


def _is_unchanged(head: Store, last: Any) -> bool:
    """Whether memory is unchanged since the recording ``last`` used it."""
    if head.remote is None:
        return head.dirty is None or head.dirty.done
    # what has run since then may have written the block
    return head.dirty is head.remote and head.used is last and (last is None or last.done)


def _base_handle(base: Any, make: Callable[[Any], Any]) -> Any:
    """Return the handle that wraps a base array, the same one while it lives; ``make`` makes it."""
    handle = _BASES.get(id(base))
    places = (getattr(handle, name, None) for name in ("_small", "_ndarray", "_store"))
    if handle is None or not any(place is base for place in places):
        handle = _BASES[id(base)] = make(base)
    return handle


def _of_elements(name: str) -> Callable[..., Any]:
    """Return a method that calls NumPy's method of this name on the elements."""

    def method(self: Attributes, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._elements_now(), name)(*args, **kwargs)

    method.__name__ = name
    return method


def _rebuild(cls: type[Handle], a: NDArray = np.empty(0)) -> Any:  # noqa: B008
    return adopt(cls, a, config.current().eager_below)


class Attributes(Handle):
    """The attributes of an array, and the methods that return its elements."""

    __slots__ = ()
    __getitem__: Callable[[Any], Any]
    __setitem__: Callable[[Any, Any], None]
    transpose: Callable[..., Any]
    swapaxes: Callable[[int, int], Any]
    copy: Callable[..., Any]

    def _adopt(self, value: Any) -> Any:
        """Return a plain array as a wrapped one; anything else as it is."""
        return operands.wrap_result(type(self), value)

    def _derive(self, view: NDArray) -> Any:
        return derive(self, view, config.current().eager_below)

    # ---- attributes --------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        a = self._small
        return self._shape if a is None else a.shape

    @shape.setter
    def shape(self, value: Any) -> None:
        if self._small is None and communicator() is not None and self.size:
            lengths = value if isinstance(value, tuple) else tuple(np.atleast_1d(value))
            wanted = window.infer_shape(lengths, self.size)
            if wanted is not None and reshaped_strides(self.shape, strides_of(self), wanted) is not None:
                self._become(self.reshape(wanted))
                return
        other = self._evaluated().view()
        other.shape = value
        self._become(self._derive(other))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return self._evaluated().strides

    @property
    def flags(self) -> Any:
        if self._small is None and self._store.char:
            return Flags(self)
        return self._evaluated().flags  # nothing is recorded on such memory

    @property
    def base(self) -> Any:
        if self._small is not None:
            b = self._small.base
            return _base_handle(b, self._adopt) if type(b) is np.ndarray else b
        head = self._store.family
        if self._store is head and self._index is None:
            return None
        return _base_handle(head, lambda head: large(type(self), head, head.shape, None))

    @property
    def device(self) -> str:
        return name_of(self._device)

    @property
    def data(self) -> memoryview:
        return export(self).data

    def __buffer__(self, flags: int) -> memoryview:
        """Return the memory as a buffer; see `dcarray.api.buffers`."""
        try:
            a = export(self)
        except MemoryError:  # statements that fail stay pending, and raise each time
            raise
        except Exception as error:  # NumPy drops this error, and asks for an array next
            session().buffer_error = (ref(self), copy.copy(error))  # its traceback would keep arrays alive
            raise
        if survives(self.dtype):
            return a.data
        if not flags & _FORMAT and a.flags.forc:  # the format is bytes
            return (a.T if a.flags.fnc else a).reshape(-1).view(np.uint8).data
        a.data.release()  # NumPy may raise its own error
        raise BufferError(refusal(self.dtype, "a buffer"))

    def _raise_buffer_error(self) -> None:
        """Raise the error of an earlier request for the buffer, unless it has been raised already."""
        this_session = session()
        if this_session.buffer_error is not None:
            (known, error), this_session.buffer_error = this_session.buffer_error, None
            if known() is self:
                raise error

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._described().__array_interface__

    @property
    def __array_struct__(self) -> Any:
        return self._described().__array_struct__

    def _described(self) -> NDArray:
        """Return the plain view, whose address and dtype NumPy will read."""
        if not survives(self.dtype):
            raise AttributeError(refusal(self.dtype, "an address"))
        self._raise_buffer_error()
        return self._pinned()

    def _pinned(self) -> NDArray:
        """Return the plain view, whose address the caller passes on; from now on calls on this memory are
        eager."""
        a = self._writable()
        if self._small is None:
            self._store.family.exports = [lambda: a]
        return a

    @property
    def ctypes(self) -> Any:
        return self._pinned().ctypes

    @property
    def flat(self) -> Any:
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        a: Any = self._writable()
        a.flat = operands.plain_of(value)

    @property
    def T(self) -> Any:
        return self.transpose() if self._small is None else small(type(self), self._small.T)

    @property
    def mT(self) -> Any:
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Any:
        if not self._complex():
            return self
        part = self._part(0)
        return self._derive(self._evaluated().real) if part is None else part

    @real.setter
    def real(self, value: Any) -> None:
        if self.dtype.kind in "iu" and not isinstance(value, Handle):
            # versions of NumPy differ in the values that they find out of bounds
            self._writable().real = value
        else:
            self.real[...] = value if isinstance(value, Handle) else np.asarray(value)

    @property
    def imag(self) -> Any:
        part = self._part(1)
        return self._derive(self._evaluated().imag) if part is None else part

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._complex():
            self.imag[...] = value if isinstance(value, Handle) else np.asarray(value)
        else:
            self._writable().imag = operands.plain_of(value)

    def _part(self, which: int) -> Any:
        """Return the real (0) or imaginary (1) part of an array that may be distributed, or None."""
        if self._small is not None or communicator() is None:
            return None
        if self._complex():
            return strided_views.part_of_complex(self, which)
        zeros = np.zeros_like(self)
        if self.dtype.kind not in "biuf" or not isinstance(zeros, Handle) or zeros._small is not None:
            return None
        zeros._readonly = True
        return zeros

    def _complex(self) -> bool:
        return self.dtype.kind == "c"

    def _become(self, other: Handle) -> None:
        for name in ("_small", "_store", "_shape", "_index", "_readonly", "_ndarray", "_small_view"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        if self.ndim == 1:
            return self._elements()
        return (self.__getitem__(k) for k in range(len(self)))

    def _elements(self) -> Iterator[Any]:
        """Yield the elements one by one, each with its value at that moment, after pending writes."""
        elements = last = None
        for k in range(len(self)):
            if self._small is not None:
                elements = self._small
            else:
                head = self._store.family
                if elements is None or not _is_unchanged(head, last):
                    elements, last = self._read_only_elements(), head.used
            yield elements[k]

    def __contains__(self, value: Any) -> bool:
        return operands.plain_of(value) in self._read_only_elements()

    # ---- values ------------------------------------------------------------------------------------
    def _read_only_elements(self) -> np.ndarray[Any, Any]:
        """Return the elements for reading only; for a view of a distributed array, no other elements are
        gathered."""
        if self._small is None and communicator() is not None:
            return backend().elements_of(self)
        return self._evaluated()

    def _elements_now(self) -> np.ndarray[Any, Any]:
        """Return the current elements for reading once; for a part of an array on a device, other elements
        are copied only if that takes no longer."""
        elements = self._part_from_device()
        return self._read_only_elements() if elements is None else elements

    __bool__ = _of_elements("__bool__")
    __int__ = _of_elements("__int__")
    __float__ = _of_elements("__float__")
    __complex__ = _of_elements("__complex__")
    __index__ = _of_elements("__index__")
    __repr__ = _of_elements("__repr__")
    __str__ = _of_elements("__str__")
    __format__ = _of_elements("__format__")
    item = _of_elements("item")
    tolist = _of_elements("tolist")
    tobytes = _of_elements("tobytes")
    dump = _of_elements("dump")
    dumps = _of_elements("dumps")

    # ---- over many ranks -------------------------------------------------------------------------
    @property
    def layout(self) -> Layout:
        """The layout of the elements over the ranks; for a view, the layout of its base array."""
        return backend().layout_of(self)

    @property
    def local(self) -> np.ndarray[Any, Any]:
        """This rank's elements as a plain array, which may be written until the array is redistributed; for a
        view, those of its base array.  All ranks have to read this attribute together."""
        return backend().local_of(self)

    def gather(self, root: int | None = None) -> np.ndarray[Any, Any] | None:
        """Return the whole array as a plain one on all ranks; with ``root`` only on that rank, None on the
        others."""
        return backend().gather(self, root)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """Return the plain array, as ``np.asarray`` does.  Plotting libraries call this method, and treat
        objects without it as sequences of rows."""
        return np.asarray(self)

    def matvec(self, v: Any) -> Any:
        """Return the product with a vector.  SciPy's iterative solvers call this method (and `rmatvec` for
        transposed problems) of matrices whose class is not NumPy's."""
        return np.asarray(self) @ np.asarray(v)

    def rmatvec(self, v: Any) -> Any:
        return np.asarray(self).conj().T @ np.asarray(v)

    def tofile(self, fid: Any, *args: Any, **kwargs: Any) -> None:
        if communicator() is not None and backend().tofile(self, fid, *args, **kwargs):
            return
        self._elements_now().tofile(fid, *args, **kwargs)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + (self.nbytes if self.base is None else 0)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if return_scalar and not array.ndim:
            return array[()]
        return array if isinstance(array, Handle) else self._adopt(np.ndarray.view(array, np.ndarray))

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        if self.dtype.hasobject:
            return self._adopt(copy.deepcopy(self._evaluated(), memo))
        return self.copy("K")

    def __reduce__(self) -> Any:
        return _rebuild, (type(self),), export(self).__reduce__()[2]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (type(self), export(self))  # whose memory may stay outside of the pickle

    def __setstate__(self, state: Any, /) -> None:
        a = np.empty(0)
        a.__setstate__(state)
        self._become(self._adopt(a))


def asking(member: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that asks NumPy about arguments which it does not expect itself."""
    name = member.__name__

    def method(self: Attributes, *args: Any, **kwargs: Any) -> Any:
        try:
            return member(self, *args, **kwargs)
        except BAD_CALL:
            pass
        return in_numpy(self, name, args, kwargs)

    method.__name__ = name
    return method


def in_numpy(x: Attributes, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of NumPy's method on the memory of an array, or raise its error."""
    a = x._writable()
    named = {k: plain_argument(x, v) for k, v in kwargs.items()}
    return x._derive(getattr(np.ndarray, name)(a, *[plain_argument(x, v) for v in args], **named))


def plain_argument(x: Handle, value: Any) -> Any:
    """Return an argument of a method of ``x`` in the form that NumPy accepts."""
    if not isinstance(value, Handle):
        return value
    if value._device is not x._device:
        common_device(None, x, value)
    return value._writable()
