"""A script with warnings (counts, lines), ``np.errstate``, and errors in loops after some writes."""

import sys
import traceback
import warnings

import numpy as np

x = np.linspace(-1, 1, 8000)
x[4000] = 0.0


def logs(x, n):
    s = 0.0
    for i in range(n):
        y = np.log(x + i)
        z = np.where(x > 0, np.sqrt(x), 0)
        s += np.nansum(y) + z.sum()
    return s


print(repr(logs(x, 6)))


def divs(x, n):
    t = 0.0
    for i in range(n):
        t = t + (1.0 / (x * i)).max()
        q = (np.arange(8) // np.zeros(8, int)).sum()
    return t, q


print(divs(x, 4))
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    logs(x, 5)
    divs(x, 3)
print(len(w), [(str(v.message), v.lineno, v.category.__name__) for v in w])


def raised(x, n):
    out = np.zeros_like(x)
    for i in range(n):
        out += 1
        out[:] = out + np.exp(x * 1000 * i)
    return out


o = None
with np.errstate(all="raise"):
    try:
        raised(x, 4)
    except FloatingPointError as e:
        print("fp", e, e.__traceback__.tb_next is not None)
calls = []
with np.errstate(all="call", call=lambda k, f: calls.append((k, f))):
    raised(x, 4)
    divs(x, 2)
print(calls)


def inside(x, n):
    s = 0.0
    for i in range(n):
        with np.errstate(divide="ignore", invalid="ignore"):
            s += np.nanmin(np.log(x * x)) if i else 0
        s += float(np.log(np.abs(x) + 1).sum())
    return s


print(inside(x, 5))
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        logs(x, 4)
    except RuntimeWarning as e:
        print("error", e)


def ints(a, b, n):
    r = a.copy()
    for _ in range(n):
        r = r // b + a % b
        r = (r * 3).astype(np.int32).astype(np.int64)
    return r


print(ints(np.arange(5000), np.arange(5000) % 7, 4)[:9])


def casts(x, n):
    s = 0
    for _ in range(n):
        s += int((x * 1e30).astype(np.int32).sum())
        s += int(np.array([300.0]).astype(np.uint8)[0])
    return s


print(casts(x, 3))


def scal(n):
    a = np.float64(0.0)
    r = 0.0
    for i in range(n):
        r = np.float64(i) / a
        k = np.int64(2**62) * np.int64(i)
    return r, k


print(scal(5))


def part(u, idx, n):
    for i in range(n):
        u[i] = i * 2.0
        u[idx[i]] += 1
    return u


u = np.zeros(3000)
idx = np.arange(3000)
idx[50] = 99999
try:
    part(u, idx, 100)
except IndexError as e:
    print(e)
    traceback.print_exc(file=sys.stdout)
print(u[:60].sum(), u[50], u[51])


def shapes(u, v, n):
    for i in range(n):
        u += 1
        if i == 7:
            v = v[:-1]
        u *= v
    return u


a = np.ones(4000)
try:
    shapes(a, np.full(4000, 1.5), 20)
except ValueError as e:
    print(e)
    traceback.print_exc(file=sys.stdout)
print(a[:3])


def zero(n, d):
    t = 0
    for i in range(n):
        t += i // d[i]
    return t


try:
    zero(10, [1, 2, 3, 0])
except ZeroDivisionError as e:
    print(e, traceback.extract_tb(e.__traceback__)[-1].lineno, traceback.extract_tb(e.__traceback__)[-1].name)


def caught(u, n):
    bad = []
    for i in range(n):
        try:
            u[i * 100] = i
            u += 1
        except IndexError as e:
            bad.append((i, str(e)))
        finally:
            u[0] += 0.5
    return bad, u.sum()


print(caught(np.zeros(1000), 15))


def ro(u, n):
    for i in range(n):
        u[i] = 1
        u += i


r = np.zeros(100)
r.flags.writeable = False
try:
    ro(r, 5)
except ValueError as e:
    print(e)


def casting(u, n):
    for _ in range(n):
        u += 1
        u += 0.5


k = np.zeros(3000, int)
try:
    casting(k, 5)
except TypeError as e:
    print(type(e).__name__, e)
print(k[:3])


def named(n):
    for i in range(n):
        if i == 30:
            s = s + 1  # noqa: F821
        q = np.arange(2000.0).sum() + i
        if i > 50:
            s = q
    return s


try:
    named(60)
except UnboundLocalError as e:
    print(e)


def after(u, n):
    i = -1
    for i in range(n):
        last = u[i] * 2
        u[i] = last
        if last > 40:
            break
    else:
        last = None
    return i, last, u.sum()


print(after(np.arange(200.0), 200), after(np.arange(10.0), 10), after(np.arange(10.0), 9))


def stop(u, n):
    for i in range(n):
        u += 1
        if i == 13:
            raise RuntimeError(f"stop at {i} {u[0]}")


w = np.zeros(2500)
try:
    stop(w, 30)
except RuntimeError as e:
    print(e, w[0])


def deep(u, n):
    for i in range(n):
        for j in range(n):
            u[i, j] = u[i, j - 1] / (j - 5 + 0.0)
    return u


print(deep(np.ones((9, 9)), 9)[:, 4:7].tolist()[:2])
