"""What is done before a run on a device: it may fail, and then nothing has been changed."""

import gc

import numpy as np
import pytest
from cuda_runs import Machine, machine, needs_gxx
from devices import needs_opencl

from dcarray.ir.ops import CALLS, CallOp
from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.host_calls import NotStarted, prepare
from dcarray.lowering.gpu.kernels import DeviceKernel

__all__ = ["machine"]

RIGHT = DeviceKernel("kernel void phase0(global int *a, INDEX at, INDEX n) { a[at] = n; }", (1,), (4,))
WRONG = DeviceKernel("kernel void phase0(global int *a, INDEX at, INDEX n) { a[at] = m; }", (1,), (4,))
SIZE = 3_000_000


@needs_opencl
def test_buffers_that_were_reserved_come_from_the_pool() -> None:
    one = devices.get("opencl:0")
    if "simulator" in one.description.lower():
        pytest.skip("a simulator has no pool")
    prepare(one, (RIGHT,), (("_t0", SIZE), ("_t1", SIZE), ("_t0", None), ("_t2", SIZE), ("_t1", None)))
    held = one._pool.managed_bytes
    first, second = one.allocate(SIZE), one.allocate(SIZE)
    assert one._pool.managed_bytes == held
    del first
    third = one.allocate(SIZE)
    assert one._pool.managed_bytes == held and second is not third


@needs_opencl
@pytest.mark.parametrize(
    "kernels, buffers, cause",
    [((WRONG,), (), RuntimeError), ((RIGHT,), (("_t0", SIZE), ("_t1", 1 << 60)), MemoryError)],
)
def test_what_cannot_be_had_is_said_before_the_run(
    kernels: tuple[DeviceKernel, ...], buffers: tuple[tuple[str, int], ...], cause: type[Exception]
) -> None:
    one = devices.get("opencl:0")
    gc.collect()  # of other tests' arrays
    active = one._pool.active_bytes
    with pytest.raises(NotStarted) as error:
        prepare(one, kernels, buffers)
    assert isinstance(error.value.__cause__, cause)
    del error
    assert one._pool.active_bytes <= active


# an array that is given is written before the last memory is allocated, or after it
EARLY = """region() {
  in a: f64[9000];  temp t: f64[9000];  temp u: f64[9000];  temp v: f64[9000]
  inout o: f64[9000]
  {first}
  t[i] = add(a[i], 1.0) for i<9000
  call test.turned(t) -> u
  call test.turned(u) -> v
  o[i+1] = multiply(v[i], v[8999-i]) for i<8999
}"""


@needs_gxx
@pytest.mark.parametrize("early", [False, True])
def test_memory_is_allocated_once_unless_something_is_written_before(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    def turned(writes: list[np.ndarray], reads: list[np.ndarray], attrs: object) -> None:
        writes[0][...] = reads[0][::-1]

    monkeypatch.setitem(CALLS, "test.turned", CallOp("test.turned", turned, over=0))
    region = parse(EARLY.replace("{first}", "o[i] = add(o[i+1], 1.0) for i<1" if early else ""))
    plan, device, asked = compile_region(region, "cuda"), machine.device, []
    alloc, given = device._alloc, {name: device.allocate(72000) for name in "ao"}
    device.upload(np.arange(9000.0), given["a"])
    device.upload(np.zeros(9000), given["o"])

    def counted(size: int) -> object:
        asked.append(size)
        return alloc(size)

    monkeypatch.setattr(device, "_alloc", counted)
    arguments = [given[name] for name in plan.arrays]
    machine.cupy.memory = machine.cupy.in_use + 100_000  # for one temporary of two
    before, found = np.empty(9000), np.empty(9000)
    device.download(given["o"], before)
    with pytest.raises(NotStarted):
        plan.run([], arguments, (), device)
    device.download(given["o"], found)
    np.testing.assert_array_equal(found, before)
    machine.cupy.memory = 1 << 28
    asked.clear()
    assert plan.run([], arguments, (), device) == 0
    assert asked == [72000] * (6 if early else 3)
    t = np.arange(9000.0) + 1
    device.download(given["o"], found)
    np.testing.assert_array_equal(found[1:], (t * t[::-1])[:-1])
    assert found[0] == early
