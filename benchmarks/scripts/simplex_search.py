"""Nelder-Mead and gradient descent on small vectors, with callbacks that collect what they see."""
import numpy as np


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def numerical_gradient(f, x, h=1e-5):
    g = np.zeros_like(x)
    for i in range(len(x)):
        e = np.zeros_like(x)
        e[i] = h
        g[i] = (f(x + e) - f(x - e)) / (2 * h)
    return g


def nelder_mead(f, x0, step=0.5, max_iter=2000, tol=1e-10, callback=None):
    dim = len(x0)
    simplex = [np.array(x0, dtype=float)]
    for i in range(dim):
        p = np.array(x0, dtype=float)
        p[i] += step
        simplex.append(p)
    values = [f(p) for p in simplex]
    for it in range(max_iter):
        order = np.argsort(values)
        simplex = [simplex[k] for k in order]
        values = [values[k] for k in order]
        if callback is not None:
            callback(it, simplex[0], values[0])
        if abs(values[-1] - values[0]) < tol:
            break
        centre = np.mean(simplex[:-1], axis=0)
        reflected = centre + (centre - simplex[-1])
        fr = f(reflected)
        if fr < values[0]:
            expanded = centre + 2 * (centre - simplex[-1])
            fe = f(expanded)
            simplex[-1], values[-1] = (expanded, fe) if fe < fr else (reflected, fr)
        elif fr < values[-2]:
            simplex[-1], values[-1] = reflected, fr
        else:
            contracted = centre + 0.5 * (simplex[-1] - centre)
            fc = f(contracted)
            if fc < values[-1]:
                simplex[-1], values[-1] = contracted, fc
            else:
                for k in range(1, dim + 1):
                    simplex[k] = simplex[0] + 0.5 * (simplex[k] - simplex[0])
                    values[k] = f(simplex[k])
    return simplex[0], values[0], it


def gradient_descent(f, x, max_iter=6000, callback=None):
    for it in range(max_iter):
        g = numerical_gradient(f, x)
        t = 1.0
        while f(x - t * g) > f(x) - 0.3 * t * (g @ g) and t > 1e-12:
            t *= 0.5
        x = x - t * g
        if callback:
            callback(it, x, f(x))
        if np.linalg.norm(g) < 1e-3:
            break
    return x, f(x), it


path = []
x, fx, it = nelder_mead(rosenbrock, [-1.2, 1.0, 0.8, -0.5], callback=lambda k, p, v: path.append((k, v)))
print("simplex", it, np.round(x, 4), len(path), f"{path[20][1]:.6f}")

seen = []


def watch(k, p, v):
    if k % 500 == 0:
        print("  descent", k, f"{v:.2f}")
    seen.append(p.copy())


x, fx, it = gradient_descent(rosenbrock, np.array([-1.2, 1.0, 0.5]), callback=watch)
seen = np.array(seen)
print("descent", it > 100, np.round(x, 3), f"{np.hypot(*np.diff(seen, axis=0).T).sum():.2f}")
