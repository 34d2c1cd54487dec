"""A script that shares memory: ctypes, memoryview, mmap, bytearray, struct, array interface, strides."""

import array
import ctypes
import mmap
import os
import struct
import tempfile

import numpy as np

libc_qsort = ctypes.CDLL(None).qsort
compare_type = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)
)


def advance(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])


u = np.linspace(0, 1, 20_000) ** 2
pointer = u.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
seen = memoryview(u)
advance(u, 50)
print(pointer[100] == u[100], seen[100] == u[100], seen.format, seen.nbytes)
pointer[5] = 42.0
total = u.sum()
advance(u, 1)
print(total, u[4:7], seen[5])

few = np.array([3.0, 1.0, 2.0, -1.0])
libc_qsort(
    few.ctypes.data_as(ctypes.c_void_p), 4, 8, compare_type(lambda a, b: (a[0] > b[0]) - (a[0] < b[0]))
)
print(few)

raw = bytearray(8 * 10_000)
x = np.frombuffer(raw)
for k in range(30):
    x += k
    x *= 0.5
print(struct.unpack_from("d", raw, 800)[0] == x[100], x.sum(), x.flags.owndata)
try:
    raw.extend(b"12345678")
except BufferError as error:
    print(type(error).__name__)

numbers = array.array("d", range(20_000))
y = np.asarray(numbers)
for k in range(10):
    y[:] = y * 0.9 + 1
    numbers[k] = -1.0
print(numbers[:12].tolist(), y[:3], sum(numbers))

with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, "field")
    with open(name, "wb") as out:
        out.write(bytes(8 * 30_000))
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        z = np.ndarray((100, 300), buffer=mapped)
        for k in range(20):
            z[k % 100] += k
            z[:, 1] = z[:, 0] + 1
        print(struct.unpack_from("d", mapped, 8 * 300 * 19)[0], z.sum())
        del z
    again = np.memmap(name, dtype=float, mode="r+", shape=(100, 300))
    for _ in range(10):
        again += 1
        again[::2] *= 0.5
    again.flush()
    print(type(again).__name__, type(again + 1).__name__, np.fromfile(name).sum(), again[3, 1])
    del again


class Owner:
    def __init__(self, a):
        self.kept = a
        self.__array_interface__ = a.__array_interface__


window = np.lib.stride_tricks.as_strided(u, (u.size - 4, 5), (8, 8))
wrapped = np.asarray(Owner(u))
before = wrapped[:3].copy()
u *= 2
print(window.mean(), (wrapped[:3] / before), np.shares_memory(wrapped, u), window[10, 0] == u[10])
u.flags.writeable = False
for _ in range(3):
    try:
        u += 1
    except ValueError as error:
        print(error)
bits = u[:4].view(np.uint64)
print(bits.dtype, u.tobytes()[:8] == struct.pack("d", u[0]), hash(u.tobytes()) == hash(bytes(memoryview(u))))
