"""Runs over many cubes: with NumPy or with dcarray, on one or more cores, on one or several ranks.

``python -m examples.stap.runs`` is the program of one such run: it prints its cubes a second as JSON.  It is
started by `rates`, since threads of BLAS are counted when NumPy is loaded.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from copy import copy
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import dcarray as dc
from dcarray import comm

from .processing import Processor, Settings
from .scene import Scene, cube

DISTINCT = 4  # cubes that are made; they are processed in turn
ROUNDS = 3  # of measurements: of each kind the fastest counts, for others may use the machine, too


def detect(processor, one, device=None):
    """Return the powers and detections of a cube as NumPy arrays; NumPy computes if ``device`` is None."""
    if device is None:
        return processor(one)
    power, found = processor(dc.asarray(one, device=device))
    return np.asarray(power), np.asarray(found)


def detect_all(processor, cubes, count, device=None):
    """Return the numbers of detections in cubes, distributed to the ranks; a dead rank's cubes run again."""
    with dc.options(distribute_above=None):  # each rank's arrays are its own

        def tile(k):
            return int(detect(processor, cubes[k % len(cubes)], device)[1].sum())

        return dc.pmap(tile, range(count))


def warm(processor, cubes, device):
    """Process cubes until the compiled code is used."""
    for _ in range(3):
        with dc.options(distribute_above=None):
            for one in cubes:
                detect(processor, one, device)
        dc.wait()


def false_alarms(scene, settings, cubes, device=None):
    """Return the number of detections in cubes without targets, and the expected number."""
    empty = replace(scene, targets=())
    processor = Processor(empty, settings)
    found = [detect(processor, cube(empty, 1000 + k), device)[1] for k in range(cubes)]
    return sum(int(one.sum()) for one in found), settings.false_alarms * sum(one.size for one in found)


def rates(scene, device, seconds, ranks):
    """Return cubes a second of runs in new processes, with NumPy and dcarray, by a line of text.

    Raises
    ------
    RuntimeError
        If a run fails; the message has its errors.
    """
    cores = len(os.sched_getaffinity(0))
    one = {"OPENBLAS_NUM_THREADS": "1", "DCARRAY_THREADS": "1"}
    kinds = [("one thread", one, 1), (f"{cores} cores", {}, 1)]
    if ranks > 1:
        kinds.append((f"{ranks} ranks of one thread", one, ranks))
    found = {}
    for _ in range(ROUNDS):
        for name, where in (("NumPy", "numpy"), ("dcarray", device)):
            for text, variables, size in kinds:
                rate = _rate(scene, where, seconds, variables, size)
                found[f"{name}, {text}"] = max(rate, found.get(f"{name}, {text}", 0))
    return found


def times(scene, device, numpy=True, rounds=5):
    """Return the least seconds of a cube for dcarray on a device, NumPy and CuPy (if installed), run in
    turn in this process; and the bytes that dcarray's kernels read and write for a cube."""
    processor, one = Processor(scene, Settings()), cube(scene, 0)
    warm(processor, [one] * 2, device)
    before = dc.report().bytes
    detect(processor, one, device)
    moved = dc.report().bytes - before
    ways = {"dcarray": lambda: detect(processor, one, device)}
    if numpy:
        ways["NumPy"] = lambda: detect(processor, one)
    if device.startswith("cuda") and find_spec("cupy"):
        ways["CuPy"] = _with_cupy(processor, one)
        ways["CuPy"]()
    least = dict.fromkeys(ways, np.inf)
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            least[name] = min(least[name], time.perf_counter() - begin)
    return least, moved


def _with_cupy(processor, one):
    """Return a function for the same processing with CuPy, from the host's memory and back to it."""
    cupy, there = import_module("cupy"), copy(processor)
    for name in ("matched", "taper", "target", "load"):
        setattr(there, name, cupy.asarray(getattr(processor, name)))
    return lambda: tuple(map(cupy.asnumpy, there(cupy.asarray(one))))


def _rate(scene, where, seconds, variables, ranks):
    command = [sys.executable, "-m", "examples.stap.runs", "--on", where, "--seconds", str(seconds)]
    command += ["--shape", *map(str, (scene.channels, scene.pulses, scene.samples, scene.chirp))]
    if ranks > 1:
        launcher = _launcher()
        command = [launcher, "-n", str(ranks), *command]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env=os.environ | variables, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _launcher():
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise RuntimeError("several ranks need mpiexec: pip install 'dcarray[mpi]'")
    return found


def main():
    """Run once, on all ranks of the job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", default="cpu", help="numpy, or a device of dcarray")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--shape", type=int, nargs=4, default=(16, 64, 960, 65))
    args = parser.parse_args()
    device = None if args.on == "numpy" else args.on
    scene = Scene(*args.shape, targets=())
    processor = Processor(scene, Settings())
    cubes = [cube(scene, k) for k in range(DISTINCT)]
    warm(processor, cubes, device)
    ranks = comm.world()
    count = 4 * ranks.size
    while True:
        ranks.barrier()
        begin = time.perf_counter()
        detect_all(processor, cubes, count, device)
        ranks.barrier()
        took = comm.Bcast(np.array([time.perf_counter() - begin]), 0)[0]
        if took >= args.seconds:
            break
        count = int(count * max(2, 1.2 * args.seconds / took))
    if ranks.rank == 0:
        print(json.dumps(count / float(took)))


if __name__ == "__main__":
    main()
