"""Smoothed particle hydrodynamics: a toy star that settles."""
import math
import numpy as np


def W(x, y, h):
    r = np.sqrt(x**2 + y**2)
    return (1.0 / (h * np.sqrt(np.pi))) ** 2 * np.exp(-(r**2) / h**2)


def gradW(x, y, h):
    r = np.sqrt(x**2 + y**2)
    n = -2 * np.exp(-(r**2) / h**2) / h**4 / np.pi
    return n * x, n * y


def separations(ri, rj):
    M, N = ri.shape[0], rj.shape[0]
    rix = ri[:, 0].reshape((M, 1))
    riy = ri[:, 1].reshape((M, 1))
    rjx = rj[:, 0].reshape((N, 1))
    rjy = rj[:, 1].reshape((N, 1))
    return rix - rjx.T, riy - rjy.T


def density(r, pos, m, h):
    dx, dy = separations(r, pos)
    return np.sum(m * W(dx, dy, h), 1).reshape((r.shape[0], 1))


def forces(pos, vel, m, h, k, n, lmbda, nu):
    N = pos.shape[0]
    rho = density(pos, pos, m, h)
    P = k * rho ** (1 + 1 / n)
    dx, dy = separations(pos, pos)
    dWx, dWy = gradW(dx, dy, h)
    ax = -np.sum(m * (P / rho**2 + P.T / rho.T**2) * dWx, 1).reshape((N, 1))
    ay = -np.sum(m * (P / rho**2 + P.T / rho.T**2) * dWy, 1).reshape((N, 1))
    a = np.hstack((ax, ay))
    a -= lmbda * pos
    a -= nu * vel
    return a


def main():
    N = 400
    dt = 0.04
    M, R = 2.0, 0.75
    h, k, n, nu = 0.1, 0.1, 1, 1.0
    lmbda = 2 * k * (1 + n) * np.pi ** (-3 / (2 * n)) * (M * math.gamma(5 / 2 + n) / R**3 / math.gamma(1 + n)) ** (1 / n) / R**2
    np.random.seed(42)
    m = M / N
    pos = np.random.randn(N, 2)
    vel = np.zeros(pos.shape)
    acc = forces(pos, vel, m, h, k, n, lmbda, nu)
    profile_points = np.zeros((100, 2))
    profile_points[:, 0] = np.linspace(0, 1, 100)
    for i in range(100):
        vel += acc * dt / 2
        pos += vel * dt
        acc = forces(pos, vel, m, h, k, n, lmbda, nu)
        vel += acc * dt / 2
        if i % 25 == 0:
            print(i, "%.5f" % density(pos, pos, m, h).max())
    profile = density(profile_points, pos, m, h)
    print("%.5f %.5f %.6f" % (profile[0, 0], profile.mean(), np.sqrt((pos**2).sum(1)).mean()))


main()
