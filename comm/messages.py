"""Messages and collective operations for NumPy arrays, named after MPI's functions.

Arrays may have any strides and are sent without a copy.  Arrays of dcarray are evaluated first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dcarray.comm.transport.agreement import check_equal
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import INTERNAL_TAG, Communicator, check_tag
from dcarray.comm.transport.protocol import Request as _Request
from dcarray.comm.transport.user_arrays import new_like, writable_memory

from .cart import Ranks, ranks_of

__all__ = ["Allreduce", "Alltoall", "Bcast", "Irecv", "Isend", "Reduce", "Request", "Wait", "Waitall"]


class Request:
    """A nonblocking message, for `Wait` and `Waitall`; a message to or from rank None is complete at once."""

    def __init__(self, comm: Communicator, message: _Request | None) -> None:
        self._comm, self._message = comm, message

    def wait(self) -> None:
        """Wait until the message is complete."""
        _wait_all([self])


def _wait_all(requests: Iterable[Request]) -> None:
    held = [request for request in requests if request._message is not None]
    if held:
        held[0]._comm.waitall([request._message for request in held if request._message is not None])
    for request in held:
        request._message = None  # lets go of the array's memory


def _user_tag(tag: int) -> int:
    if check_tag(tag) == INTERNAL_TAG:
        raise ValueError(f"tag {INTERNAL_TAG} is taken; those below it are free")
    return tag


def Isend(x: Any, dest: int | None, tag: int = 0, comm: Ranks = None) -> Request:
    """Begin to send an array, and return the request to wait for.

    Parameters
    ----------
    x : array_like
        Any shape, strides and dtype without Python objects.  Must not change until the request is complete.
    dest : int or None
        The receiving rank; None, which `Cart.neighbour` returns beyond an end, sends nothing.
    tag : int
        From 0 to 32766.
    comm : Communicator or Cart, optional
        The ranks among which `dest` is numbered; by default all.

    Returns
    -------
    Request
    """
    group, tag = ranks_of(comm), _user_tag(tag)
    return Request(group, None if dest is None else group.isend([np.asarray(x)], dest, tag))


def Irecv(x: Any, source: int | None, tag: int = 0, comm: Ranks = None) -> Request:
    """Begin to receive a message into an array of exactly as many bytes; return the request to wait for.

    Parameters
    ----------
    x : ndarray
        Of NumPy or dcarray, with any strides; has the received elements once the request is complete.
    source : int or None
        The sending rank; from None nothing is received.
    tag : int
        From 0 to 32766.
    comm : Communicator or Cart, optional
        The ranks among which `source` is numbered; by default all.

    Returns
    -------
    Request

    Raises
    ------
    TypeError
        When `x` is not an array.
    """
    group, tag = ranks_of(comm), _user_tag(tag)
    return Request(group, None if source is None else group.irecv([writable_memory(x)], source, tag))


def Wait(request: Request) -> None:
    """Wait until a message is complete.

    Raises
    ------
    MismatchError
        When the message has more or fewer bytes than the receiving array.
    """
    request.wait()


def Waitall(requests: Iterable[Request]) -> None:
    """Wait until all of some messages are complete; they must belong to one communicator or its groups."""
    _wait_all(requests)


def Bcast(x: Any, root: int = 0, comm: Ranks = None) -> Any:
    """Copy the root's elements to every rank, in place.

    Parameters
    ----------
    x : ndarray
        Of NumPy or dcarray, with the same shape and dtype on all ranks; strides may differ.
    root : int
        The rank whose elements are copied.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them call this.

    Returns
    -------
    ndarray
        `x`.
    """
    group = ranks_of(comm)
    group.bcast(np.asarray(x) if group.rank == root else writable_memory(x), root)
    return x


def Allreduce(x: Any, op: str = "sum", out: Any = None, comm: Ranks = None) -> Any:
    """Reduce the ranks' arrays element by element; all ranks get the result.

    Parameters
    ----------
    x : array_like
        Of the same shape and dtype everywhere.
    op : str
        "sum", "prod", "max", "min" (which pass NaNs on, as NumPy's do), "land", "lor", "band", "bor", "bxor".
    out : ndarray, optional
        An array for the result; may be `x`.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them call this.

    Returns
    -------
    ndarray
        `out`, or a new array like `x`.
    """
    here = np.asarray(x)
    result = new_like(x, here.shape) if out is None else out
    ranks_of(comm).allreduce(here, _check_output(result, here), op)
    return result


def Reduce(x: Any, op: str = "sum", root: int = 0, out: Any = None, comm: Ranks = None) -> Any:
    """Reduce the ranks' arrays element by element; one rank gets the result.

    Parameters are those of `Allreduce`, and `root`, the rank that gets the result; the others return None.
    """
    group, here = ranks_of(comm), np.asarray(x)
    if group.rank != root:
        group.reduce(here, None, op, root)
        return None
    result = new_like(x, here.shape) if out is None else out
    group.reduce(here, _check_output(result, here), op, root)
    return result


def _check_output(out: Any, here: Any) -> Any:
    into = writable_memory(out)
    if into.shape != here.shape or into.dtype != here.dtype:
        raise ValueError(f"out is {into.dtype}{into.shape}, the result {here.dtype}{here.shape}")
    return into


def Alltoall(x: Any, out: Any = None, comm: Ranks = None) -> Any:
    """Send the k-th part of an array to rank k, and concatenate the parts received.

    Parameters
    ----------
    x : array_like
        Of the same shape and dtype everywhere; its first axis is cut into equal parts, one for each rank.
    out : ndarray, optional
        An array for the result; must not share memory with `x`.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them call this.

    Returns
    -------
    ndarray
        `out`, or a new array like `x`, in which part k is from rank k.

    Raises
    ------
    LayoutError
        When the length of the first axis is not a multiple of the number of ranks.
    MismatchError
        When ranks disagree on shape or dtype.
    """
    group, here = ranks_of(comm), np.asarray(x)
    check_equal(group, (here.shape, here.dtype.str), "the value sent to all")
    if not here.ndim or here.shape[0] % group.size:
        raise LayoutError(f"an array of shape {here.shape} cannot be cut into {group.size} equal parts")
    result = new_like(x, here.shape) if out is None else out
    into, n = _check_output(result, here), here.shape[0] // group.size
    parts = [slice(k * n, (k + 1) * n) for k in range(group.size)]
    group.alltoallw([[here[part]] for part in parts], [[into[part]] for part in parts])
    return result
