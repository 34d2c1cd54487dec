"""What is done before a run on a device: it may fail, and then nothing has been changed."""

from __future__ import annotations

import pytest
from devices import needs_opencl

from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.host_calls import NotStarted, prepare
from dcarray.lowering.gpu.kernels import DeviceKernel

pytestmark = needs_opencl
RIGHT = DeviceKernel("kernel void phase0(global int *a, INDEX at, INDEX n) { a[at] = n; }", (1,), (4,))
WRONG = DeviceKernel("kernel void phase0(global int *a, INDEX at, INDEX n) { a[at] = m; }", (1,), (4,))
SIZE = 3_000_000


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


@pytest.mark.parametrize(
    "kernels, buffers, cause",
    [((WRONG,), (), RuntimeError), ((RIGHT,), (("_t0", SIZE), ("_t1", 1 << 60)), MemoryError)],
)
def test_what_cannot_be_had_is_said_before_the_run(
    kernels: tuple[DeviceKernel, ...], buffers: tuple[tuple[str, int], ...], cause: type[Exception]
) -> None:
    one = devices.get("opencl:0")
    active = one._pool.active_bytes
    with pytest.raises(NotStarted) as error:
        prepare(one, kernels, buffers)
    assert isinstance(error.value.__cause__, cause)
    del error
    assert one._pool.active_bytes == active
