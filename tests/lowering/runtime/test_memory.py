"""The buffer pool: life times, reuse, bounds, threads, fork and exhaustion."""

import gc
import itertools
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest
import resident as resident_memory
from resident import resident

from dcarray.lowering.runtime import buffer_pool

BIG = (1 << 18, 8)  # 16 MiB of float64


@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (0, 1 << 40), BIG])
@pytest.mark.parametrize("dtype", [bool, np.float16, np.float64, np.complex128])
def test_looks_like_numpys_own(shape, dtype):
    mine, theirs = buffer_pool.empty(shape, dtype), np.empty(shape, dtype)
    assert type(mine) is np.ndarray
    assert (mine.shape, mine.dtype, mine.strides) == (theirs.shape, theirs.dtype, theirs.strides)
    assert mine.flags.writeable and mine.flags.aligned and mine.flags.c_contiguous
    assert buffer_pool.address_of(mine) == mine.__array_interface__["data"][0]
    mine.fill(1)
    assert (mine == 1).all()


def test_large_arrays_are_aligned_and_apart():
    arrays = [buffer_pool.empty(BIG, float) for _ in range(4)]
    addresses = [buffer_pool.address_of(array) for array in arrays]
    assert all(address % 64 == 0 for address in addresses)
    for number, array in enumerate(arrays):
        array.fill(number)
    assert [array[0, 0] for array in arrays] == [array[-1, -1] for array in arrays] == [0, 1, 2, 3]
    assert not any(np.shares_memory(a, b) for a in arrays for b in arrays if a is not b)


def test_allocate_gives_the_address():
    for shape in ((5,), BIG):
        array, address = buffer_pool.allocate(shape, np.float32)
        assert address == array.__array_interface__["data"][0]


def test_a_block_returns_when_the_last_view_dies():
    pool = buffer_pool.Pool(1 << 30)
    loan, address = pool.lend(1 << 21)
    array = np.ndarray((1 << 18,), float, loan)
    view = array[5:].reshape(-1)[::2]
    export = memoryview(view)
    del loan, array, view
    assert pool.stats()["lent"] == 1 << 21
    export.release()
    del export
    assert pool.stats() == {"lent": 0, "retained": 1 << 21, "reused": 0, "mapped": 1}
    assert pool.lend(1 << 21)[1] == address
    assert pool.stats()["reused"] == 1


def test_similar_sizes_share_a_block():
    pool = buffer_pool.Pool(1 << 30)
    address = pool.lend(10_000_000)[1]
    assert pool.lend(9_700_000)[1] == address
    assert pool.stats()["lent"] == 0 and pool.stats()["mapped"] == 1


def test_a_larger_block_is_divided_and_whole_again():
    pool = buffer_pool.Pool(1 << 30)
    kept = pool.lend(8 << 20)[1]
    for sizes in ((4, 4), (2, 2, 2, 2), (6, 2), (3, 5), (2, 4, 2), (8,)):
        loans = [pool.lend(size << 20) for size in sizes]
        ends = sorted(
            (address, address + (size << 20)) for (_, address), size in zip(loans, sizes, strict=True)
        )
        assert ends[0][0] == kept and all(a[1] < b[0] for a, b in itertools.pairwise(ends))
        assert all(address % 64 == 0 for address, _ in ends)
        assert len({address % 4096 for address, _ in ends}) == len(ends)  # they start at other cache lines
        assert pool.stats()["mapped"] == 1 and pool.stats()["lent"] <= 8 << 20
        for number in range(len(loans)):
            loans[number][0][...] = number
        assert all((loans[number][0] == number).all() for number in range(len(loans)))
        random.Random(1).shuffle(loans)
        while loans:
            loans.pop()
    assert pool.stats()["retained"] == 8 << 20 and pool.lend(8 << 20)[1] == kept


def test_what_is_hardly_larger_is_not_divided():
    pool = buffer_pool.Pool(1 << 30)
    kept = pool.lend(8 << 20)[1]
    loan, address = pool.lend(15 << 19)
    assert address == kept and loan.size == 8 << 20
    assert pool.stats()["retained"] == 0


def test_a_block_that_is_much_too_large_is_not_divided():
    pool = buffer_pool.Pool(1 << 30)
    kept = pool.lend(64 << 20)[1]
    loan, address = pool.lend(8 << 20)
    assert address != kept
    assert pool.stats()["retained"] == 0  # 64 were in use at once
    del loan


def test_the_smallest_block_that_fits_is_taken():
    pool = buffer_pool.Pool(1 << 30)
    loans = [pool.lend(size << 20) for size in (16, 4, 12)]
    kept = loans[1][1]
    del loans
    assert pool.lend(3 << 20)[1] == kept


def test_the_pages_of_a_part_go_back_while_the_other_one_is_in_use():
    pool = buffer_pool.Pool(1 << 30)
    pool.lend(32 << 20)[0].fill(1)
    first, rest = pool.lend(16 << 20)[0], pool.lend(16 << 20)[0]
    first.fill(1)
    rest.fill(2)
    assert pool.stats()["mapped"] == 1
    before = resident()
    del first
    pool.trim()
    assert before - resident() > 15 << 20
    assert all((rest[k::4096] == 2).all() for k in (0, 4095))
    del rest  # it is no part of a whole any more
    assert pool.stats()["retained"] == 16 << 20
    pool.trim()
    assert before - resident() > 31 << 20


def test_no_mapping_waits_for_the_garbage_collector():
    """In a process of its own, of whose memory no other test and no thread of one has a part."""
    folders = [os.path.dirname(__file__), os.path.dirname(resident_memory.__file__)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])}
    program = [sys.executable, "-c", "import test_memory; test_memory.lend_and_trim()"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def lend_and_trim():
    """Lend and free blocks, whole and in parts: what is free goes back to the system at once."""
    gc.disable()
    try:
        pool = buffer_pool.Pool(1 << 30)
        before, known = resident(), sum(isinstance(one, buffer_pool._Block) for one in gc.get_objects())
        for _ in range(5):
            pool.lend(64 << 20)[0].fill(1)
            for _ in range(2):
                loans = [pool.lend(32 << 20)[0] for _ in range(2)]
                del loans
            loans = [pool.lend(32 << 20)[0] for _ in range(2)]
            loans.pop(0)
            pool.trim()
            del loans
            pool.trim()
        assert resident() - before < 8 << 20
        assert sum(isinstance(one, buffer_pool._Block) for one in gc.get_objects()) == known
    finally:
        gc.enable()


def test_parts_never_meet_and_keep_what_was_written():
    for seed in range(8):
        draw = random.Random(seed)
        pool, loans = buffer_pool.Pool(1 << 30), []
        for _ in range(300):
            if loans and draw.random() < 0.5:
                loan, value = loans.pop(draw.randrange(len(loans)))
                assert (loan[::997] == value).all() and loan[-1] == value
                del loan
            else:
                loan = pool.lend(draw.choice([1 << 20, 1 << 21, draw.randrange(1 << 17, 1 << 23)]))[0]
                loans.append((loan, draw.randrange(256)))
                loan[...] = loans[-1][1]
                del loan
            if draw.random() < 0.05:
                pool.trim(draw.randrange(1 << 24))
            assert pool.stats()["retained"] + pool.lent <= pool._most
        loans.clear()
        assert pool.stats()["lent"] == 0


def test_what_is_kept_is_bounded_and_the_oldest_goes_first():
    pool = buffer_pool.Pool(6 << 20)
    a, b, c = pool.lend(2 << 20), pool.lend(2 << 20), pool.lend(4 << 20)
    kept = b[1], c[1]
    del a, b, c
    assert pool.stats()["retained"] == 6 << 20
    assert {pool.lend(2 << 20)[1], pool.lend(4 << 20)[1]} == set(kept)
    pool.trim(4 << 20)
    assert pool.stats()["retained"] <= 4 << 20
    pool.trim()
    assert pool.stats()["retained"] == 0


def test_what_is_larger_than_the_bound_does_not_push_others_out_when_it_comes_back():
    pool = buffer_pool.Pool(6 << 20)
    large, b, c = pool.lend(100 << 20), pool.lend(2 << 20), pool.lend(4 << 20)
    del b, c
    del large
    assert pool.stats()["retained"] == 6 << 20


def test_memory_goes_back_before_more_is_mapped_than_was_in_use_at_once():
    pool = buffer_pool.Pool(1 << 30)
    a, b = pool.lend(40 << 20), pool.lend(36 << 20)
    del a
    c = pool.lend(44 << 20)  # 40 MiB lie there, but 76 were in use at once
    assert pool.stats() == {"lent": 80 << 20, "retained": 0, "reused": 0, "mapped": 3}
    del b, c
    assert pool.stats()["retained"] == 80 << 20  # as many as were
    d = pool.lend(30 << 20)
    assert pool.stats()["retained"] == 50 << 20 and pool.stats()["reused"] == 1
    del d


@pytest.mark.parametrize(("sizes", "kept"), [((40, 64, 104, 160), 160), ((20, 80), 80), ((160, 80, 40), 160)])
def test_what_comes_again_is_there_again(sizes, kept):
    pool = buffer_pool.Pool(1 << 30)
    for _ in range(4):  # one after the other, never together
        for size in sizes:
            pool.lend(size << 20)
    before = pool.stats()
    for size in sizes:
        pool.lend(size << 20)
    after = pool.stats()
    assert after["mapped"] == before["mapped"] and after["reused"] == before["reused"] + len(sizes)
    assert after["retained"] == before["retained"] == kept << 20
    pool.trim(150 << 20)  # what users ask for, and the bound, come before
    assert pool.stats()["retained"] <= 150 << 20


def test_many_threads_never_share_a_block():
    pool = buffer_pool.Pool(1 << 30)
    wrong = []

    def work(number):
        for _ in range(50):
            loan, _ = pool.lend(1 << 20)
            loan[:64] = number
            loan[-64:] = number
            if not ((loan[:64] == number).all() and (loan[-64:] == number).all()):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert pool.stats()["lent"] == 0
    assert pool.stats()["mapped"] <= 16  # each thread holds one block while it asks for the next


def test_a_collection_inside_the_pool_does_not_hang():
    class Cycle:
        pass

    pool = buffer_pool.Pool(1 << 30)
    for _ in range(20):
        ring = Cycle()
        ring.me, ring.loan = ring, pool.lend(1 << 20)[0]
    old = gc.get_threshold()
    del ring
    try:
        gc.set_threshold(1)
        for _ in range(20):
            pool.lend(1 << 20)
            pool.stats()
    finally:
        gc.set_threshold(*old)
    gc.collect()
    assert pool.stats()["lent"] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork_copies_and_the_child_can_allocate():
    array = buffer_pool.empty(BIG, float)
    array.fill(1.0)
    buffer_pool.POOL._lock.acquire()  # as if another thread were inside the pool
    try:
        child = os.fork()
        if child == 0:
            array.fill(2.0)
            other = buffer_pool.empty(BIG, float)
            os._exit(0 if array[0, 0] == 2.0 and other.shape == BIG else 1)
    finally:
        buffer_pool.POOL._lock.release()
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 1.0).all()


def test_exhaustion_trims_and_then_says_so_as_numpy_does():
    buffer_pool.empty(BIG, float)
    with pytest.raises(MemoryError, match="Unable to allocate"):
        buffer_pool.empty((1 << 50,), float)
    assert buffer_pool.stats()["retained"] == 0
    with pytest.raises(ValueError, match="array is too big"):
        buffer_pool.empty((1 << 62, 1 << 62), float)
    with pytest.raises(ValueError, match="negative dimensions"):
        buffer_pool.empty((-1, 5), float)
    assert buffer_pool.empty(BIG, float).shape == BIG


def test_objects_stay_out_of_the_pool():
    assert (buffer_pool.empty((1 << 18,), object) == np.empty((1 << 18,), object)).all()


def test_steady_state_leaks_nothing():
    for _ in range(3):
        buffer_pool.empty(BIG, float)
    before = buffer_pool.stats()
    for _ in range(1000):
        buffer_pool.empty(BIG, float)
    after = buffer_pool.stats()
    assert after["mapped"] <= before["mapped"] + 2  # other threads may have mapped some
    few = 10 * (16 << 20)  # bytes that other threads may have been lent
    assert after["lent"] <= before["lent"] + few
    assert sys.getrefcount(buffer_pool.POOL) < 50


@pytest.mark.parametrize("past", [64, 4096, buffer_pool._HUGE - 64, buffer_pool._HUGE])
def test_a_block_fits_in_its_mapping_wherever_that_lies(monkeypatch, past):
    """The system puts a mapping anywhere; the way to the next huge page may be all but a whole one."""
    monkeypatch.setattr(buffer_pool, "address_of", lambda array: 5 * buffer_pool._HUGE + past)
    for serial in range(300):
        block = buffer_pool._Block(buffer_pool.POOLED, buffer_pool.POOLED, serial)
        assert block.skip + block.size <= len(block.mapped)
        assert block.address % 64 == 0


@pytest.mark.skipif(not buffer_pool._ADVISE, reason="no huge pages here")
@pytest.mark.parametrize("nbytes", [buffer_pool._HUGE - 1, buffer_pool._HUGE, 3 * buffer_pool._HUGE + 5])
def test_huge_pages_end_where_the_array_does(monkeypatch, nbytes):
    asked = []

    class Mapping:
        def __init__(self, *args, **kwargs):
            pass

        def madvise(self, option, start, length):
            asked.append(length)

    monkeypatch.setattr(buffer_pool.mmap, "mmap", Mapping)
    monkeypatch.setattr(buffer_pool.np, "frombuffer", lambda *args: None)
    monkeypatch.setattr(buffer_pool, "address_of", lambda array: 5 * buffer_pool._HUGE)
    buffer_pool._Block(buffer_pool._size_class(nbytes), nbytes, 1)
    assert asked == ([nbytes // buffer_pool._HUGE * buffer_pool._HUGE] if nbytes >= buffer_pool._HUGE else [])


@pytest.mark.parametrize("shape", [(), (0,), (3, 4), BIG])
@pytest.mark.parametrize("dtype", [bool, np.float64, np.complex128, object])
def test_zeros_are_zeros_in_memory_that_others_have_used(shape, dtype):
    for _ in range(3):
        made = buffer_pool.zeros(shape, dtype)
        assert made.shape == shape and made.dtype == dtype and not made.any()
        made.fill(1)


def test_zeros_that_nobody_has_used_take_no_memory():
    buffer_pool.trim()
    before = resident()
    made = buffer_pool.zeros(BIG, float)
    assert resident() - before < made.nbytes // 8
    assert not made.any()
