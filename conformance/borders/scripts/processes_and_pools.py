"""A script that sends arrays to processes and back: pools, queues, pipes, shared memory, fork in a loop."""

import multiprocessing as mp
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

import numpy as np

DT = 0.01
TABLE = np.linspace(0, 1, 1_000)


def energy(args):
    seed, n = args
    x = np.random.default_rng(seed).normal(size=n)
    for _ in range(30):
        x += DT * (TABLE[0] - x**3)
    return seed, float((x**2).sum())


def consume(source, sink):
    while (item := source.get()) is not None:
        name, array = item
        sink.put((name, array.shape, float(array.sum()), type(array).__name__))


def add_in_place(name, shape, value):
    block = shared_memory.SharedMemory(name=name)
    view = np.ndarray(shape, dtype=float, buffer=block.buf)
    for _ in range(5):
        view += value
    del view
    block.close()


if __name__ == "__main__":
    with mp.Pool(2) as pool:
        print(pool.map(energy, [(k, 20_000) for k in range(4)]))
        print(pool.apply(np.cumsum, (np.arange(5.0),)), pool.starmap(np.dot, [(np.ones(3), np.arange(3))]))
    with ProcessPoolExecutor(2, mp_context=mp.get_context("spawn")) as executor:
        print(list(executor.map(energy, [(7, 10_000), (8, 10_000)])))

    context = mp.get_context("fork")
    source, sink = context.Queue(), context.Queue()
    worker = context.Process(target=consume, args=(source, sink))
    worker.start()
    u = np.zeros((100, 120))
    u[40:60, 50:70] = 1
    for step in range(30):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        if step % 10 == 0:
            source.put((step, u.copy()))
    source.put(None)
    print([sink.get() for _ in range(3)], u.max())
    worker.join()

    block = shared_memory.SharedMemory(create=True, size=8 * 20_000)
    shared = np.ndarray((200, 100), dtype=float, buffer=block.buf)
    shared[:] = 1
    for k in (1, 2):
        child = context.Process(target=add_in_place, args=(block.name, shared.shape, float(k)))
        child.start()
        child.join()
        shared *= 2
    print(shared.sum(), shared[0, :3], type(shared.base).__name__)
    del shared
    block.close()
    block.unlink()

    near, far = mp.Pipe()
    x = np.arange(30_000.0)
    for step in range(6):
        x = x * 0.5 + step
        if step == 3:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                x += 1
                far.send(x[:4])
                far.close()
                os._exit(0)
            os.waitpid(pid, 0)
    print(near.recv(), x[:4])
