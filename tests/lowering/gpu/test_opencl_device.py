"""OpenCL devices: buffers, copies between host and device, the pool, mistakes."""

import gc
import multiprocessing
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from callers import together
from devices import needs_opencl

from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.gpu.opencl.device import OpenCLDevice
from dcarray.lowering.runtime.disk import DiskCache

pytestmark = needs_opencl


@pytest.fixture
def opencl() -> OpenCLDevice:
    one = devices.get("opencl:0")
    assert isinstance(one, OpenCLDevice)
    return one


@pytest.fixture
def pooled(opencl: OpenCLDevice) -> OpenCLDevice:
    if "simulator" in opencl.description.lower():
        pytest.skip("a simulator has buffers of their exact sizes, and no pool")
    return opencl


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 3), (100_003,)])
def test_elements_come_back(opencl: OpenCLDevice, dtype: str, shape: tuple[int, ...]) -> None:
    source = np.asarray(np.random.default_rng(1).integers(0, 100, shape)).astype(dtype)
    buffer = opencl.allocate(source.nbytes)
    opencl.upload(source, buffer)
    before = source.copy()
    source[...] = 0  # the buffer has its own elements
    target = np.ones(shape, dtype)
    opencl.download(buffer, target)
    np.testing.assert_array_equal(target, before)


def test_copies_are_done_in_order(opencl: OpenCLDevice) -> None:
    first, second = opencl.allocate(800), opencl.allocate(800)
    source = np.arange(100.0)
    opencl.upload(source, first)
    opencl.upload(np.zeros(100), second)
    opencl.copy(first, second, 400)
    opencl.upload(np.full(100, -1.0), first)
    opencl.synchronise()
    target = np.ones(100)
    opencl.download(second, target)
    np.testing.assert_array_equal(target, np.where(source < 50, source, 0))
    part = np.ones(3)
    opencl.download(second, part)
    assert part.tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:Non-empty compiler output")
def test_a_kernel_of_its_context_works_on_its_buffers(opencl: OpenCLDevice) -> None:
    import pyopencl as cl

    text = "kernel void twice(global int *a, int c) { a[get_global_id(0)] = 2 * a[get_global_id(0)] + c; }"
    twice = cl.Kernel(cl.Program(opencl.context, text).build(cache_dir=False), "twice")
    buffer = opencl.allocate(4000)
    opencl.upload(np.arange(1000, dtype=np.int32), buffer)
    for _ in range(3):
        twice(opencl.queue, (1000,), None, buffer, np.int32(1))
    target = np.empty(1000, np.int32)
    opencl.download(buffer, target)
    np.testing.assert_array_equal(target, 8 * np.arange(1000) + 7)


def _filling(text: str, dtype: np.dtype) -> DeviceKernel:
    """A kernel that fills a buffer with an argument, ``text`` being its type in OpenCL C."""
    body = "INDEX i = get_global_id(0); if (i < n) a[start + i] = c;"
    source = f"kernel void phase0(global {text} *a, INDEX start, {text} c, INDEX n) {{ {body} }}"
    return DeviceKernel(source, (64,), (dtype.itemsize, 0))


@pytest.mark.parametrize("dtype, text", [
    *(
        ("?", "uchar"), ("i1", "char"), ("u1", "uchar"), ("i2", "short"), ("u2", "ushort"),
        ("f2", "ushort"),
    ),
    *(("i4", "int"), ("u4", "uint"), ("i8", "long"), ("q", "long"), ("u8", "ulong"), ("Q", "ulong")),
    *(("f4", "float"), ("f8", "double"), ("c8", "float2"), ("c16", "double2")),
])  # fmt: skip
def test_arguments_by_value(opencl: OpenCLDevice, dtype: str, text: str) -> None:
    kind = np.dtype(dtype)
    kernel = _filling(text, kind)
    largest = np.iinfo(kind).max if kind.kind in "iu" else 1.5 - 2j if kind.kind == "c" else -1.5
    for value in (np.array(largest, kind), np.array(largest, kind)[()], np.zeros((), kind)):
        buffer = opencl.allocate(200 * kind.itemsize)
        opencl.upload(np.ones(200, kind), buffer)
        kernel(opencl, (2,), ((buffer, 10), value), (100,))
        target = np.empty(200, kind)
        opencl.download(buffer, target)
        np.testing.assert_array_equal(target[10:110], np.full(100, value))
        np.testing.assert_array_equal(np.delete(target, np.s_[10:110]), np.ones(100, kind))


def test_built_kernels_outlive_the_process_in_the_cache_folder(
    opencl: OpenCLDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl, "cache_dir", str(tmp_path))
    kernel = _filling("int", np.dtype(np.int32))

    def filled(value: int) -> set[int]:
        monkeypatch.setattr(opencl, "_built", {})  # as in another process
        buffer, target = opencl.allocate(40), np.empty(10, np.int32)
        kernel(opencl, (1,), ((buffer, 0), np.int32(value)), (10,))
        opencl.download(buffer, target)
        return set(target.tolist())

    assert filled(1) == {1}
    (file,) = (tmp_path / "opencl").iterdir()
    written = file.stat().st_ino
    with monkeypatch.context() as patch:
        patch.setattr("pyopencl.cache.create_built_program_from_source_cached", None)  # no source is compiled
        assert filled(2) == {2}
    file.write_bytes(file.read_bytes()[:-9])  # damaged: it is compiled again
    assert filled(3) == {3} and file.stat().st_ino != written
    DiskCache(str(tmp_path / "opencl")).write(file.name.partition(".")[0], b"not a program")
    assert filled(4) == {4}
    monkeypatch.setattr(opencl, "cache_dir", None)
    assert filled(5) == {5}


def test_a_kernel_that_cannot_be_built_is_an_error_each_time(
    opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(opencl, "_built", {})
    kernel = DeviceKernel("kernel void phase0(global int *a, INDEX at, INDEX n) { a[at] = m; }", (1,), (4,))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"opencl:0: (?s:.*)BUILD_PROGRAM_FAILURE"):
            opencl.build(kernel)
    with monkeypatch.context() as patch:
        patch.setattr(opencl, "_build", None)  # it is not tried again
        with pytest.raises(RuntimeError, match="opencl:0"):
            kernel(opencl, (1,), ((opencl.allocate(4), 0),), (1,))
    assert not list(tmp_path.iterdir())


def test_double_precision_is_refused_on_a_device_without_it(
    opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl, "fp64", False)
    monkeypatch.setattr(opencl, "_built", {})
    opencl.build(_filling("float", np.dtype(np.float32)))
    with pytest.raises(RuntimeError, match="no_double_precision_on_this_device"):
        opencl.build(_filling("double", np.dtype(np.float64)))


def test_threads_launch_one_kernel_with_arguments_of_their_own(opencl: OpenCLDevice) -> None:
    kernel = _filling("int", np.dtype(np.int32))
    buffers = [opencl.allocate(8000) for _ in range(4)]

    def launch(number: int) -> None:
        for place in range(2000):
            kernel(opencl, (1,), ((buffers[number], place), np.int32(number)), (1,))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        together(4, launch)
    finally:
        sys.setswitchinterval(interval)
    for number, buffer in enumerate(buffers):
        target = np.empty(2000, np.int32)
        opencl.download(buffer, target)
        assert (target == number).all()


def test_a_free_buffer_is_used_again(pooled: OpenCLDevice) -> None:
    buffer = pooled.allocate(1_000_000)
    address = buffer.int_ptr
    other = pooled.allocate(1_000_000)
    assert other.int_ptr != address
    del buffer
    gc.collect()
    assert pooled.allocate(1_000_000).int_ptr == address


def test_the_pool_keeps_a_bounded_part_of_the_memory(
    pooled: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooled, "_most_free", 1 << 20)
    for size in range(1 << 18, 1 << 22, 1 << 18):
        pooled.allocate(size)  # and dropped at once
        assert pooled._pool.managed_bytes - pooled._pool.active_bytes <= (1 << 20) + 2 * size


def test_too_much_is_a_memory_error_and_nothing_is_lost(pooled: OpenCLDevice) -> None:
    buffer = pooled.allocate(80)
    pooled.upload(np.arange(10.0), buffer)
    for nbytes in (pooled.handle.max_mem_alloc_size + 1, pooled.memory, 1 << 60):
        with pytest.raises(MemoryError, match=f"opencl:0 cannot allocate {nbytes} bytes"):
            pooled.allocate(nbytes)
    target = np.empty(10)
    pooled.download(buffer, target)
    assert target.tolist() == list(range(10))


def test_a_runtime_without_memory_is_a_memory_error(
    pooled: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl as cl

    def fails(nbytes: int) -> None:
        raise cl.MemoryError("clCreateBuffer", cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, "")

    class Pool:
        active_bytes = managed_bytes = 0
        allocate = staticmethod(fails)

    monkeypatch.setattr(pooled, "_pool", Pool())
    with pytest.raises(MemoryError, match="opencl:0 has no memory left"):
        pooled.allocate(100)


def test_mistakes_are_errors(opencl: OpenCLDevice) -> None:
    buffer = opencl.allocate(80)
    with pytest.raises(ValueError, match="C-contiguous"):
        opencl.upload(np.zeros((3, 3)).T[:, :2], buffer)
    with pytest.raises(ValueError, match="C-contiguous"):
        opencl.download(buffer, np.zeros((3, 3)).T)
    with pytest.raises(RuntimeError, match="opencl:0: "):
        opencl.upload(np.zeros(10_000), buffer)
    with pytest.raises(RuntimeError, match="opencl:0: "):
        opencl.download(buffer, np.zeros(10_000))


def test_after_a_fork_elements_can_be_read_and_all_else_is_an_error(opencl: OpenCLDevice) -> None:
    buffer = opencl.allocate(800)
    opencl.upload(np.arange(100.0), buffer)
    kernel = _filling("double", np.dtype(np.float64))
    kernel(opencl, (1,), ((buffer, 0), np.float64(7)), (1,))
    opencl.synchronise()

    def child(results: multiprocessing.SimpleQueue) -> None:
        target = np.empty(100)
        opencl.download(buffer, target)
        said = []
        for use in (
            lambda: opencl.allocate(8),
            lambda: opencl.build(kernel),
            lambda: kernel(opencl, (1,), ((buffer, 0), np.float64(1)), (1,)),
        ):
            try:
                use()
            except RuntimeError as error:
                said.append(str(error))
        results.put((target.tolist(), said))

    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=child, args=(results,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    elements, said = results.get()
    assert elements == [7.0, *range(1, 100)]
    assert said == ["opencl:0 cannot be used after a fork"] * 3
    opencl.allocate(8)


def test_it_says_what_it_is(opencl: OpenCLDevice) -> None:
    import pyopencl as cl

    handles = [handle for platform in cl.get_platforms() for handle in platform.get_devices()]
    assert opencl.handle in handles and len(devices.find()) >= len(handles)
    assert opencl.fp64 == ("cl_khr_fp64" in opencl.handle.extensions)
    assert opencl.memory == opencl.handle.global_mem_size > 0
    assert "OpenCL" in opencl.description and "GiB" in opencl.description
    assert opencl.description in repr(opencl)
    assert (
        opencl
        is devices.get("opencl")
        is next(one for one in devices.find() if one.name.startswith("opencl"))
    )
