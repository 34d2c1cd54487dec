"""A script that sends arrays to joblib's workers, also in mapped files, and uses results in a loop."""

import os
import tempfile

import numpy as np
from joblib import Memory, Parallel, delayed, dump, load


def row_norms(block, power):
    return (np.abs(block) ** power).sum(axis=1) ** (1 / power)


def fill(out, source, start, stop):
    out[start:stop] = np.sqrt(source[start:stop]) + start


def trajectory(seed):
    rng = np.random.default_rng(seed)
    x = np.zeros(5_000)
    for _ in range(40):
        x += rng.normal(size=x.size)
        x *= 0.98
    return x


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    x = np.linspace(0, 10, 240_000).reshape(1200, 200)
    for _ in range(10):
        x = x + 0.1 * np.sin(x)
    parts = Parallel(n_jobs=2, mmap_mode="r", max_nbytes=1000)(
        delayed(row_norms)(block, p) for p in (1, 2) for block in np.array_split(x, 3)
    )
    print([part.shape for part in parts], sum(part.sum() for part in parts))

    dump(x, os.path.join(folder, "x.joblib"))
    mapped = load(os.path.join(folder, "x.joblib"), mmap_mode="r+")
    out = np.memmap(os.path.join(folder, "out"), dtype=float, shape=x.size, mode="w+")
    Parallel(n_jobs=2)(
        delayed(fill)(out, mapped.reshape(-1), k, k + 60_000) for k in range(0, 240_000, 60_000)
    )
    print(type(mapped).__name__, out.sum(), out[[0, 60_000, -1]], bool((out > 0).any()))
    mapped[0] = 0
    mapped.flush()
    print(load(os.path.join(folder, "x.joblib"))[0].sum(), x[0].sum())

    paths = Parallel(n_jobs=2, return_as="generator")(delayed(trajectory)(seed) for seed in range(6))
    total = np.zeros(5_000)
    for k, path in enumerate(paths):
        total += path / (k + 1)
    print(total.std(), total.max())

    memory = Memory(folder, verbose=0)
    runs = []

    @memory.cache
    def costly(a, k):
        runs.append(k)
        return {"sum": (a * k).sum(), "head": a[0, :3] * k}

    for k in (2, 3, 2):
        y = x * 1.0
        print(k, costly(y, k)["sum"], costly(y, k)["head"], len(runs))
