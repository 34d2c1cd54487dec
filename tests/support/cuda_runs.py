"""Programs run on a made-up CUDA device, whose graphs run in random orders on the processor."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cuda_on_host
import fake_cuda_core
import numpy as np
import pytest
from fake_cuda_core import FakeCore
from fake_cupy import FakeCupy

from dcarray.ir.build import is_scalar_argument
from dcarray.ir.nodes import Region
from dcarray.lowering.gpu.cuda import device as module
from dcarray.lowering.gpu.cuda import graph
from dcarray.lowering.gpu.cuda.device import CudaDevice

needs_gxx = pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="no C++ compiler")


@dataclass
class Machine:
    """A device, with the libraries that it thinks it has."""

    device: CudaDevice
    cupy: FakeCupy
    core: FakeCore
    downloads: int = 0

    def run(self, plan: Any, region: Region, memory: dict[str, np.ndarray], symbols: dict[str, int]) -> None:
        """Run a plan on arrays, which get the results."""
        self.start(plan, region, memory, symbols)()

    def start(
        self, plan: Any, region: Region, memory: dict[str, np.ndarray], symbols: dict[str, int]
    ) -> Callable[[], None]:
        """Run a plan on arrays; return a function that gives them the results."""
        given: list[Any] = []
        for name in plan.arrays:
            array = next(one for one in region.arrays if one.name == name)
            if name not in memory:
                shape = tuple(int(eval(str(extent), {}, symbols)) for extent in array.shape)
                memory[name] = np.empty(shape, array.dtype)
            if is_scalar_argument(array):
                given.append(memory[name])
                continue
            memory[name] = np.array(memory[name], order="C")
            given.append(self.device.allocate(memory[name].nbytes))
            self.device.upload(memory[name], given[-1])
        assert plan.run([], given, tuple(symbols.values()), self.device) == 0

        def finish() -> None:
            for name, one in zip(plan.arrays, given, strict=True):
                if not isinstance(one, np.ndarray):
                    self.device.download(one, memory[name])

        return finish


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A device of this machine that is not there."""
    cupy = FakeCupy()
    core = FakeCore(cupy.log)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cuda.core", core)
    monkeypatch.setattr(module, "compile_source", fake_cuda_core.compile_source)
    monkeypatch.setattr(module, "unavailable", lambda: None)
    monkeypatch.setattr(module, "version", lambda: "made up")
    monkeypatch.setattr(graph, "ALIKE", 1)  # addresses may come back by chance
    made = Machine(CudaDevice(0), cupy, core)
    download = made.device.download

    def counted(buffer: Any, target: np.ndarray, start: int = 0) -> None:
        made.downloads += 1
        download(buffer, target, start)

    monkeypatch.setattr(made.device, "download", counted)
    yield made
