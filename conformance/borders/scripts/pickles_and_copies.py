"""A script with copies, pickles, weak references and identities of arrays that a loop changes."""

import copy
import gc
import io
import pickle
import sys
import weakref
from dataclasses import asdict, dataclass, field, replace

import numpy as np


@dataclass
class State:
    u: np.ndarray
    history: list = field(default_factory=list)

    def __eq__(self, other):
        return np.array_equal(self.u, other.u)


class Solver:
    def __init__(self, n):
        self.u = np.linspace(0, 1, n)
        self.v = self.u
        self.view = self.u[::2]
        self.cache = {}

    def run(self, steps):
        for k in range(steps):
            self.u += 0.01 * np.sin(self.u)
            self.cache[k % 3] = self.u
        return self

    def __getstate__(self):
        return {"u": self.u, "n": len(self.u)}

    def __setstate__(self, state):
        self.u = state["u"]
        self.n = state["n"]


s = Solver(20_000).run(30)
print(s.u is s.v, s.view.base is s.u, s.cache[0] is s.cache[1], s.view.sum(), s.v.sum())
t = pickle.loads(pickle.dumps(s))
print(t.n, np.array_equal(t.u, s.u), type(t.u) is np.ndarray, hasattr(t, "view"), t.u.flags.owndata)

buffers = []
data = pickle.dumps(s.u, protocol=5, buffer_callback=buffers.append)
again = pickle.loads(data, buffers=buffers)
again_shares = np.shares_memory(again, s.u)
s.u *= 2
print(len(data) < 1_000, len(buffers), again_shares, again.sum() == s.u.sum())

state = State(np.zeros(15_000))
snapshots = []
for k in range(20):
    state.u = state.u + k
    state.history.append(state.u.mean())
    if k % 5 == 0:
        snapshots.append(copy.deepcopy(state))
    if k == 12:
        state = replace(state, u=state.u * 0.5)
print([snap.u[0] for snap in snapshots], len(state.history), state == copy.copy(state), snapshots[1] == state)
print(sorted(asdict(state)), asdict(state)["u"] is state.u, sys.getsizeof(state.u) > 120_000)

freed = []
for k in range(5):
    big = np.ones(50_000) * k
    weakref.finalize(big, freed.append, k)
    small = big[:10] + 1
    del big
gc.collect()
print(freed, small.sum())

file = io.BytesIO()
for k in range(3):
    np.save(file, np.arange(4_000) * k)
file.seek(0)
print([int(np.load(file).sum()) for _ in range(3)])
np.savez(stored := io.BytesIO(), a=s.u, b=np.eye(3))
stored.seek(0)
loaded = np.load(stored)
print(sorted(loaded.files), loaded["a"].sum(), copy.copy(s.view).base is None, s.u.__reduce__()[0].__name__)
seen = {id(s.u): "u"}
s.u -= 1
print(seen.get(id(s.u)), id(s.v) in seen, pickle.loads(pickle.dumps([s.u, s.u]))[0] is not s.u)
pair = pickle.loads(pickle.dumps([s.u, s.u]))
print(pair[0] is pair[1], pair[0].dtype, np.float64 is type(pair[0][0]))
