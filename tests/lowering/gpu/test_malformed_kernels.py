"""Kernels of blocks that are wrong: what the verifier refuses, and what the machine finds."""

import numpy as np
import pytest
from kernel_machine import Machine

from dcarray.lowering.kernel import nodes as K
from dcarray.lowering.kernel.verify import check

F8, COUNT = np.dtype("d"), 4
LANE, BLOCK = (K.affine(0, K.Term(1, None, name)) for name in ("lane", "block"))
ONE = K.Lit(np.float64(1).tobytes(), F8)


def threads(*body, count=COUNT):
    return K.Threads("lane", count, body)


def kernel(*body):
    phase = K.Phase("block", K.affine(0, K.Term(1, "n0")), "blocks", body, (), COUNT)
    return K.Kernel((K.Buffer("p0", F8, "rw"),), ("n0",), (phase,))


def run(made, blocks=1, size=COUNT):
    check(made)
    binding = K.Binding((K.Pointer("a", 0),), (blocks,), (blocks,), (1,))
    flat = np.arange(size, dtype=F8)
    Machine(made, binding, {"a": (flat, 0)}, {})
    return flat


SHARED = K.Stack("s0", F8, COUNT)
FILL = K.Store("s0", LANE, K.Elem("p0", LANE, F8))
NEXT = K.Elem("s0", K.affine(COUNT - 1, K.Term(-1, None, "lane")), F8)


def test_threads_see_what_others_stored_before_the_barrier():
    assert run(kernel(SHARED, threads(FILL), threads(K.Store("p0", LANE, NEXT)))).tolist() == [3, 2, 1, 0]


def test_a_race_on_shared_memory_is_found():
    with pytest.raises(AssertionError, match="a race"):
        run(kernel(SHARED, threads(FILL, K.Store("p0", LANE, NEXT))))


def test_two_threads_that_store_one_element_are_found():
    with pytest.raises(AssertionError, match="a race"):
        run(kernel(threads(K.Store("p0", K.affine(), ONE))))


def test_a_race_of_blocks_is_found():
    with pytest.raises(AssertionError, match="a race"):
        run(kernel(threads(K.Store("p0", LANE, ONE))), blocks=2)
    far = K.affine(0, LANE, K.Term(COUNT, None, "block"))
    assert run(kernel(threads(K.Store("p0", far, ONE))), blocks=2, size=2 * COUNT).tolist() == [1] * 8


def test_an_access_out_of_bounds_is_found():
    with pytest.raises(AssertionError, match="out of bounds"):
        run(kernel(threads(K.Store("p0", K.affine(1, LANE), ONE))))


def test_registers_of_a_thread_last_and_are_its_own():
    own = K.Stack("r0", F8, 1, True)
    keep = threads(K.Store("r0", K.affine(), K.Elem("p0", LANE, F8)))
    back = threads(K.Store("p0", LANE, K.Op("negative", (K.Elem("r0", K.affine(), F8),), F8)))
    assert run(kernel(own, keep, back)).tolist() == [0, -1, -2, -3]


@pytest.mark.parametrize(("body", "words"), [
    ((K.Store("p0", BLOCK, ONE),), "by no thread"),
    ((threads(threads(K.Store("p0", LANE, ONE))),), "4 threads here"),
    ((threads(K.Store("p0", LANE, ONE), count=3),), "3 threads here"),
    ((threads(K.Stack("r0", F8, 1, True)),), "one thread's own anyway"),
    ((threads(K.Let("v0", ONE)), threads(K.Store("p0", LANE, K.Local("v0", F8)))), "no local v0"),
    ((K.Let("v0", K.Index(LANE)),), "no loop variable lane"),
    ((K.Let("r0", K.Index(BLOCK)), threads(K.For("r0", K.affine(), (K.affine(2),), 1, "serial", ()))),
     "r0 hides another name"),
])  # fmt: skip
def test_the_verifier_refuses(body, words):
    with pytest.raises(ValueError, match=words):
        check(kernel(*body))
