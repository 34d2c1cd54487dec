"""Radar pulses in tiles over ranks: the parallel loop of AutoMPHC's STAP example with ``dc.pmap``.

``mpiexec -n 4 python examples/tiles.py`` under MPI, on simulated ranks with ``--ranks 6``, or alone.  Each
pulse is filtered in the frequency domain and weighted by a matrix.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import dcarray as dc
from dcarray import comm


def signals(pulses: int, channels: int = 16, samples: int = 512) -> tuple[Any, Any]:
    """Return the channels' received samples of each pulse, and the weights; the same on all ranks."""
    rng = np.random.default_rng(0)
    received = rng.standard_normal((pulses, channels, samples)) + 1j
    return received, rng.standard_normal((channels, channels))


def filtered(received: Any, weights: Any) -> Any:
    """Return a tile of pulses after a Fourier transform, weighting and the inverse transform."""
    spectrum = np.fft.fft(received, axis=-1)
    spectrum = weights @ spectrum / (1 + np.abs(spectrum).max(axis=(1, 2), keepdims=True))
    return np.abs(np.fft.ifft(spectrum, axis=-1))


def run(pulses: int, size: int) -> tuple[Any, int]:
    """Process all pulses on all ranks; return the results on rank 0, and the tiles that this rank has run."""
    received, weights = signals(pulses)
    ran = []

    def tile(part: range) -> Any:
        ran.append(part)
        return filtered(received[part.start : part.stop], weights)

    found = dc.pmap(tile, range(pulses), size, root=0)
    return None if found is None else np.concatenate(found), len(ran)


def main() -> None:
    """Run, check the results, and print the numbers of tiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pulses", type=int, default=200)
    parser.add_argument("--size", type=int, default=4, help="pulses in a tile")
    parser.add_argument("--ranks", type=int, help="simulate so many ranks instead of MPI's")
    args = parser.parse_args()
    work = (args.pulses, args.size)
    results = comm.run(args.ranks, run, *work) if args.ranks else [run(*work)]
    for found, ran in results:
        print(f"{ran} tiles run")
        if found is not None:
            assert np.allclose(found, filtered(*signals(args.pulses)))
            print(f"{found.shape}: as one process has it")


if __name__ == "__main__":
    main()
