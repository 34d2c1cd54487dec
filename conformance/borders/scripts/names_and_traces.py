"""A script whose names other code looks up: globals, eval, patches, tracebacks, warnings, threads."""

import contextlib
import functools
import inspect
import io
import sys
import threading
import traceback
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np

scale = 2.0
log = []


def timed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        result = function(*args, **kwargs)
        log.append((function.__name__, np.shape(result)))
        return result

    return inner


@timed
def relax(u, steps=20):
    """Smooth an array."""
    for _ in range(steps):
        u = u + 0.1 * scale * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


def fails(u, where):
    for k in range(10):
        u[k] = u[k] + k
        if k == where:
            raise RuntimeError(f"at {k}")
    return u


def plus_one(u, steps):
    for _ in range(steps):
        u = np.sqrt(u) + 1
    return u


x = np.sin(np.linspace(0, 6, 25_000))
print(relax(x).std(), relax.__name__, relax.__doc__, log, list(inspect.signature(relax).parameters))
globals()["scale"] = 1.0
print(relax(x).std(), eval("relax(x, 3)[:2]"), len(inspect.getsource(plus_one).splitlines()))
namespace = {"np": np, "x": x}
exec("y = np.zeros(3)\nfor k in range(4):\n    y += x[k] + k\n", namespace)
print(
    namespace["y"], "y" in globals(), isinstance(plus_one, types.FunctionType), plus_one.__code__.co_argcount
)

u = np.zeros(30_000)
try:
    fails(u, 6)
except RuntimeError as error:
    frames = traceback.extract_tb(error.__traceback__)
    print(error, frames[-1].name, frames[-1].line, u[:9])

plain_sqrt = np.sqrt
with mock.patch.object(np, "sqrt", lambda a: plain_sqrt(a) * 0 + 3):
    print(plus_one(np.ones(10_000), 5)[:2])
print(plus_one(np.ones(10_000), 5)[:2])

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    z = np.ones(20_000)
    for k in range(3):
        z = z / (z - 1 + k * 0.5)
    print(
        sorted({str(w.message) for w in caught}),
        {w.category.__name__ for w in caught},
        np.isinf(z).sum(),
        z[0],
    )
with np.errstate(all="raise"):
    try:
        for k in range(3):
            z = np.log(np.zeros(10) - k)
    except FloatingPointError as error:
        print(error, k)

shared = np.zeros(40_000)
lock = threading.Lock()


def work(k):
    for _ in range(20):
        part = np.full(10_000, 0.5) * k
        with lock:
            shared[k * 10_000 : (k + 1) * 10_000] += part
    return threading.current_thread() is not threading.main_thread()


with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(work, range(4))), shared[::10_000], shared.sum())

lines = set()


def tracer(frame, event, arg):
    if frame.f_code.co_name == "plus_one" and event == "line":
        lines.add(frame.f_lineno - frame.f_code.co_firstlineno)
    return tracer


sys.settrace(tracer)
plus_one(np.ones(100), 3)
sys.settrace(None)
print(sorted(lines))
captured = io.StringIO()
with contextlib.redirect_stdout(captured):
    for k in range(3):
        x *= 0.5
        print(k, x[100])
print(captured.getvalue().split())


def steps(u):
    while True:
        sent = yield u.sum()
        u = u * 0.9 + (sent or 0)


running = steps(np.ones(20_000))
print(next(running), running.send(1.0), next(running), inspect.getgeneratorstate(running))
