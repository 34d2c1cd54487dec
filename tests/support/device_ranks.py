"""A program of ranks with a part of ``opencl:0`` each: ``mpiexec -n 2 python -m device_ranks``."""

from typing import Any

import numpy as np

import dcarray as dc
from dcarray.comm import ProcessGrid, world
from dcarray.lowering.gpu.opencl.device import OpenCLDevice

STEPS = 5
launched: dict[str, int] = {}
copied = [0]


def _counted(name: str) -> None:
    """Count a method's calls, or the bytes that it copies."""
    method = getattr(OpenCLDevice, name)

    def counting(self: Any, *args: Any) -> Any:
        if name == "launch":
            launched[self.name] = launched.get(self.name, 0) + 1
        else:
            copied[0] += args[0 if name == "upload" else 1].nbytes
        return method(self, *args)

    setattr(OpenCLDevice, name, counting)


def stencil(x: Any, steps: int) -> None:
    """Smooth an array in place."""
    for _ in range(steps):
        x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4
        dc.evaluate()


def results(x: Any) -> list[Any]:
    """What is asked of an array: element by element, folded, laid out anew, by others than kernels."""
    y = np.sqrt(x * x + 1) - x
    return [y, y.sum(), y.max(axis=0), y.T.copy() @ x, np.sort(y, axis=0)]


def main() -> None:
    """Compare with NumPy on arrays cut along rows, columns and both, and look where it has run."""
    rank, size = world().rank, world().size
    mine = f"opencl:0.{rank % 2}"
    if dc.devices()[:3] != ("cpu", "opencl:0.0", "opencl:0.1"):
        print("no device can be divided")
        return
    plain = np.random.default_rng(1).random((60, 90))
    for grid in ((size, 1), (1, size)):
        want, x = plain.copy(), dc.distribute(plain, ProcessGrid(grid))
        stencil(want, STEPS), stencil(x, STEPS)
        np.testing.assert_array_equal(np.asarray(x), want)
        for got, expected in zip(results(x), results(want), strict=True):
            np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12)
    assert list(launched) == [mine], launched
    x = dc.distribute(plain, ProcessGrid((size, 1)))
    stencil(x, 1)
    copied[0] = 0
    stencil(x, STEPS)
    assert 0 < copied[0] <= STEPS * 4 * 90 * 8, copied  # a row or two to the neighbour, and as many from it
    x += 1  # on the device, after a view of the host
    view = x.local
    view[...] = rank
    np.testing.assert_array_equal(np.asarray(x * 2)[[0, -1], 0], [0, 2 * (size - 1)])
    with np.errstate(divide="raise"):  # by the processor, since devices do not know
        try:
            dc.evaluate(1 / (x - x))
        except FloatingPointError:
            print("ended")


if __name__ == "__main__":
    for one in ("launch", "upload", "download"):
        _counted(one)
    main()
