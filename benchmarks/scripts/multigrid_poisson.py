"""Poisson equation by Jacobi, conjugate gradients and recursive multigrid: arrays of many sizes."""
import numpy as np


def apply_A(u, h):
    r = np.zeros_like(u)
    r[1:-1, 1:-1] = (4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]) / h**2
    return r


def smooth(u, f, h, sweeps, omega=0.8):
    for _ in range(sweeps):
        new = u.copy()
        new[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + h**2 * f[1:-1, 1:-1]) / 4
        u = u + omega * (new - u)
    return u


def restrict(r):
    n = (r.shape[0] - 1) // 2 + 1
    c = np.zeros((n, n))
    c[1:-1, 1:-1] = (4 * r[2:-2:2, 2:-2:2]
                     + 2 * (r[1:-3:2, 2:-2:2] + r[3:-1:2, 2:-2:2] + r[2:-2:2, 1:-3:2] + r[2:-2:2, 3:-1:2])
                     + r[1:-3:2, 1:-3:2] + r[1:-3:2, 3:-1:2] + r[3:-1:2, 1:-3:2] + r[3:-1:2, 3:-1:2]) / 16
    return c


def prolong(e):
    n = 2 * (e.shape[0] - 1) + 1
    f = np.zeros((n, n))
    f[::2, ::2] = e
    f[1::2, ::2] = (e[:-1] + e[1:]) / 2
    f[:, 1::2] = (f[:, :-1:2] + f[:, 2::2]) / 2
    return f


def v_cycle(u, f, h):
    if u.shape[0] <= 3:
        u[1, 1] = h**2 * f[1, 1] / 4
        return u
    u = smooth(u, f, h, 3)
    r = f - apply_A(u, h)
    r[0] = r[-1] = 0
    r[:, 0] = r[:, -1] = 0
    coarse = restrict(r)
    e = v_cycle(np.zeros_like(coarse), coarse, 2 * h)
    return smooth(u + prolong(e), f, h, 3)


def conjugate_gradient(A, b, tol=1e-8, max_iter=1000, report=None):
    x = np.zeros_like(b)
    r = b - A(x)
    p = r.copy()
    rs = np.vdot(r, r)
    for it in range(max_iter):
        Ap = A(p)
        alpha = rs / np.vdot(p, Ap)
        x += alpha * p
        r -= alpha * Ap
        new = np.vdot(r, r)
        if report is not None:
            report(it, np.sqrt(new))
        if np.sqrt(new) < tol * np.linalg.norm(b):
            break
        p = r + (new / rs) * p
        rs = new
    return x, it


for n in (65, 129, 257):
    h = 1.0 / (n - 1)
    x = np.linspace(0, 1, n)
    X, Y = np.meshgrid(x, x)
    exact = np.sin(np.pi * X) * np.sin(2 * np.pi * Y) * np.exp(X)
    f = apply_A(exact, h)
    f[0] = f[-1] = 0
    f[:, 0] = f[:, -1] = 0
    u = np.zeros((n, n))
    cycles = 0
    while np.linalg.norm(f - apply_A(u, h)) > 1e-7 * np.linalg.norm(f):
        u = v_cycle(u, f, h)
        cycles += 1
    if n < 200:
        norms = []
        v, its = conjugate_gradient(lambda w: apply_A(w, h), f, 1e-6, report=lambda k, r: norms.append(r))
        print("cg", its < 2 * n, np.abs(v - exact).max() < 1e-4, f"{norms[10]:.4f}")
    jac = smooth(np.zeros((n, n)), f, h, 100)
    print(n, cycles, np.abs(u - exact).max() < 1e-6, f"{np.abs(jac - exact).max():.5f}")
