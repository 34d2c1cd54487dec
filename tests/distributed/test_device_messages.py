"""Messages in the memory of CUDA devices: which ones, where MPI takes them, and that results are NumPy's."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import device_messages
import numpy as np
import pytest
from cuda_runs import needs_gxx
from device_messages import OPTIONS, buffer_under
from launching import launch, needs_mpi

import dcarray as dc
from dcarray import comm
from dcarray.comm.exchange.halo import halo_exchange
from dcarray.comm.planning.rank_program.steps import ArrayExchange, Exchanges, Execution
from dcarray.comm.transport.simulated_ranks import ThreadCommunicator
from dcarray.distributed import device_blocks
from dcarray.distributed.device_blocks import DeviceBlock, _Memory
from dcarray.lowering.gpu.cuda.device import CudaDevice

FAR = 1 << 60  # where the made-up device has its memory for MPI: others that use the address crash


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaDevice]:
    made = device_messages.make_up(monkeypatch.setitem)
    made.address = lambda buffer: buffer.ptr + FAR
    yield made
    device_blocks._device.cache_clear()


@pytest.fixture
def begun(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each message that ranks begin, whether it lies in the device's memory."""
    running, found, launch = [], [], device.launch
    device.launch = lambda *given: running.append(given) or launch(*given)
    device.synchronise = running.clear

    def noting(begin: Callable[..., Any]) -> Callable[..., Any]:
        def noted(self: ThreadCommunicator, parts: Any, *rest: int) -> Any:
            found.append(any(buffer_under(part) is not None for part in parts))
            if found[-1]:
                assert len(parts) == 1 and parts[0].flags.c_contiguous and not running
                part, buffer = parts[0], buffer_under(parts[0])
                near = part.__array_interface__["data"][0] - FAR
                assert buffer.ptr <= near and near + part.nbytes <= buffer.ptr + buffer.size
                parts = [np.asarray(_Memory(buffer, near, part.shape, part.dtype))]
            return begin(self, parts, *rest)

        return noted

    monkeypatch.setattr(ThreadCommunicator, "takes_device_memory", lambda _, trusted: trusted)
    for name in ("isend", "irecv"):
        monkeypatch.setattr(ThreadCommunicator, name, noting(getattr(ThreadCommunicator, name)))
    return found


@needs_gxx
@pytest.mark.parametrize(("how", "grid", "there"), [
    ("direct", (2, 1), 16), ("direct", (3, 1), 32), ("direct", (1, 2), 0),
    ("auto", (2, 1), 0), ("staged", (2, 1), 0),
])  # fmt: skip
def test_rows_are_sent_from_there(how: str, grid: tuple[int, ...], there: int, begun: list[bool]) -> None:
    with dc.options(**OPTIONS, device_messages=how):
        comm.run(max(grid), device_messages.program, *grid)
    assert sum(begun) == there < len(begun)  # before and at the end all elements travel


def test_elements_are_the_newest_ones(device: CudaDevice, begun: list[bool]) -> None:
    """Exchanges of halos, of arrays whose newest elements are on the host, the device, or both."""

    def rank() -> None:
        same, own, ranks = np.random.default_rng(7), np.random.default_rng(8), comm.world()
        for _ in range(100):
            h, k, width = int(same.integers(4)), int(same.integers(4)) // 2, int(same.choice([7, 40]))
            across = not same.integers(4)
            layout = comm.Layout.blocks((12, width), comm.ProcessGrid((1, 3) if across else (3, 1)),
                                        (k, min(h, 2)) if across else (h, k))  # fmt: skip
            plan = halo_exchange(layout, ranks.rank, periodic=not same.integers(4))
            names = "ab"[: int(same.integers(1, 3))]
            plain = {name: own.random(layout.local_shape(ranks.rank)) for name in names}
            held = {name: DeviceBlock(device, a.shape, a.dtype, a.copy()) for name, a in plain.items()}
            step = Exchanges(tuple([ArrayExchange(lambda p=plan: p, name, name, 8) for name in names]))
            for name in [*names] * 6:
                match same.integers(4):
                    case 0:
                        plain[name] += 1
                        device.upload(plain[name], held[name].on_device())
                        held[name].written()
                    case 1:
                        plain[name] *= 2
                        held[name].on_host(True)[...] = plain[name]
                    case 2:
                        held[name].on_host()
                    case _:
                        held[name].on_device()
                step.run(Execution(ranks, plain, None))
                step.run(Execution(ranks, held, None, direct=True))
                for each in names:
                    np.testing.assert_array_equal(held[each].copy(), plain[each])

    comm.run(3, rank)
    assert sum(begun) > 100


@needs_mpi
@needs_gxx
@pytest.mark.parametrize("how", ["direct", "auto"])
def test_under_mpi(how: str) -> None:
    done = launch(2, "-m", "device_messages", DCARRAY_DEVICE_MESSAGES=how)
    assert done.returncode == 0 and done.stdout.count("ended") == 2, done.stdout + done.stderr
    assert done.stdout.count("ended 0") == (0 if how == "direct" else 2)


@needs_mpi
def test_what_the_library_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from dcarray.comm.transport import mpi_devices

    def ask(kind: int, found: Any) -> int:
        found._obj.value = kind == 0
        return 0

    says, on = mpi_devices.says_so, [True]
    monkeypatch.setattr(mpi_devices, "_is_on", lambda _: on[0])
    for variable in ("MPIR_CVAR_ENABLE_GPU", "MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA"):
        monkeypatch.delenv(variable, raising=False)
    query, mpich = SimpleNamespace(MPIX_Query_cuda_support=lambda: 1), SimpleNamespace()
    mpich.MPIX_GPU_query_support = ask
    assert says(query, "Open MPI v4.1.6") and says(mpich, "MPICH Version: 5.0.2")
    assert not says(SimpleNamespace(), "Open MPI v4.1.6")
    assert not says(query, "MVAPICH2 2.3") and not says(mpich, "CRAY MPICH 8.1")
    monkeypatch.setenv("MPIR_CVAR_ENABLE_GPU", "0")
    on[0] = False
    assert not says(query, "Open MPI v4.1.6") and not says(mpich, "MPICH Version: 5.0.2")
    with pytest.raises(ValueError, match="device_messages='x': must be auto, staged or direct"):
        dc.options(device_messages="x").__enter__()
