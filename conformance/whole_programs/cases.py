"""Programs written by hand: one memory that is reached in several ways, some of which no analysis sees.

Each is run with few and with many elements, as the random programs are.
"""

from __future__ import annotations

from .statements import indented
from .writer import HEAD

__all__ = ["CASES"]

SIZES = (5, 20_000)

# how a callback comes by the array u of the loop that calls it: what is done before, and its parameters
REACH = {
    "global": (["global SEEN", "SEEN = u"], "", "SEEN"),
    "dict": (["BOX['u'] = u"], "", "BOX['u']"),
    "attribute": (["HOLD.u = u"], "", "HOLD.u"),
    "list": (["ITEMS[0] = u"], "", "ITEMS[0]"),
    "default": ([], "a=u", "a"),
    "closure": (["a = u"], "", "a"),
    "view": (["a = u[1:]"], "", "a"),
    "buffer": (["a = memoryview(u)"], "", "np.asarray(a)"),
}
ACTS = {"reads": "LOG.append(float({0}.sum()))", "writes": "{0}[0] -= 3"}

SOLVE = """
def solve(u, n, cb):
    for _ in range(n):
        u += 1
        cb()
    return u[:3].copy()


def steps(u, cb):
    v = u * 2
    u += v
    cb()
    u -= v
    cb()
    return v + u
"""

OWNER = """
def twice(b):
    v = np.frombuffer(b)
    v *= 2
    LOG.append(bytes(memoryview(b).cast("B")[:8]).hex())
    v += 1


def loop(b, n):
    v = np.frombuffer(b)
    for k in range(n):
        v += k
        LOG.append(float(memoryview(b).cast("B").cast("d")[0]))


def given(v, b, n):
    for k in range(n):
        v[:] = v[::-1] + k
        LOG.append(float(memoryview(b).cast("B").cast("d")[-1]))
    return v
"""

# how to make room for n numbers
ROOM = {
    "bytearray": "bytearray(8 * n)",
    "array": "array.array('d', [0.0]) * n",
    "mmap": "mmap.mmap(-1, 8 * n)",
    "ctypes": "(ctypes.c_double * n)()",
}

SHARED = """
import multiprocessing
from multiprocessing.shared_memory import SharedMemory


def child(name, n):
    block = SharedMemory(name)
    v = np.frombuffer(block.buf, count=n)
    v *= 2
    for k in range(3):
        v += k
    del v
    block.close()


def parent(block, n, start):
    v = np.frombuffer(block.buf, count=n)
    for k in range(3):
        v += k + 1
    if start is not None:
        process = multiprocessing.get_context(start).Process(target=child, args=(block.name, n))
        process.start()
        process.join()
        LOG.append(process.exitcode)
    LOG.append(float(np.frombuffer(block.buf, count=n).sum()))
    v -= 1
    return v.copy()


def scene(n):
    block = SharedMemory(create=True, size=8 * n)
    try:
        for start in {starts}:
            for _ in range(2):
                shown("shared", parent, block, n, start)
                show("block", bytes(block.buf[: 8 * n]), LOG[-4:])
                settle()
    finally:
        block.close()
        block.unlink()
"""

ATTRIBUTE = """
class Model:
    def __init__(self, n):
        self.u = np.arange(float(n))
        self.parts = [self.u[::2], self.u[1::2]]

    def asarray(self):
        y = np.asarray(self.u)
        y -= 3
        return self.u.sum()

    def view(self):
        y = self.u.reshape(-1)
        for k in range(5):
            y += k
            self.u[0] -= 1
            y[-1] = self.u[0]
        return self.u.sum()

    def pieces(self):
        for part in self.parts:
            part += 1
            self.u *= 2
            self.u %= 97
        return self.parts[0].sum() - self.u.sum()

    def rebound(self):
        y = self.u
        self.u = self.u + 1
        y += 5
        self.parts.append(y)
        self.parts.pop(0)
        return y.sum() - self.u.sum()


def scene(n):
    m = Model(n)
    for name in ("asarray", "view", "pieces", "rebound"):
        for _ in range(40):
            getattr(m, name)()
        settle()
        shown(name, getattr(m, name))
        show("state", m.u, m.parts)
"""


def _whole(text: str, sizes: tuple[int, ...] = SIZES) -> str:
    calls = [f"for n in {sizes}:", *indented(["shown(n, scene, n)"])]
    lines = [
        HEAD,
        text,
        "",
        "def main():",
        *indented(calls),
        "",
        "",
        'if __name__ == "__main__":',
        "    main()",
        "",
    ]
    return "\n".join(lines)


def _callback(way: str, act: str) -> str:
    before, parameters, name = REACH[way]
    hot = ["for _ in range(30):", "    quiet(f, u, *more, cb)", "    u %= 61", "settle()"]
    scene = [
        "u = np.arange(float(n))",
        *before,
        f"def cb({parameters}):",
        *indented([ACTS[act].format(name)]),
        "for f, more in ((solve, (3,)), (steps, ())):",
        *indented(["shown('first', f, u, *more, cb)", "show('u', u, LOG)", "LOG.clear()", *hot]),
        *indented(["LOG.clear()", "shown('hot', f, u, *more, cb)", "show('u', u, LOG)", "LOG.clear()"]),
    ]
    return _whole("\n".join([SOLVE, "", "def scene(n):", *indented(scene)]))


def _owner(kind: str) -> str:
    calls = [
        f"b = {ROOM[kind]}",
        "np.frombuffer(b)[:] = np.arange(float(n)) % 7",
        "v = np.frombuffer(b)",
        "for again in range(3):",
        *indented(
            ["shown('twice', twice, b)", "shown('loop', loop, b, 5)", "shown('given', given, v, b, 5)"]
        ),
        *indented(["show('bytes', bytes(b), LOG[-12:])", "settle()"]),
    ]
    return _whole("\n".join([OWNER, "", "def scene(n):", *indented(calls)]))


def _shared(*starts: str | None) -> str:
    return _whole(SHARED.replace("{starts}", repr(starts)), (1_000, 20_000))


CASES: dict[str, str] = {
    **{f"callback {act} {way}": _callback(way, act) for act in ACTS for way in REACH},
    **{f"memory of {kind}": _owner(kind) for kind in ROOM},
    "shared memory": _shared(None),
    "shared memory, forked child": _shared("fork"),
    "shared memory, spawned child": _shared("spawn"),
    "attribute": _whole(ATTRIBUTE),
}
