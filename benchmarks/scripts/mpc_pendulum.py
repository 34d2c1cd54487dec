"""LQR and model predictive control (projected gradient) of a cart with a pole: many small matrices."""
import numpy as np

g, m, M, l, dt = 9.81, 0.2, 1.0, 0.5, 0.02

A_c = np.array([[0, 1, 0, 0], [0, 0, -m * g / M, 0], [0, 0, 0, 1], [0, 0, (M + m) * g / (M * l), 0]])
B_c = np.array([[0], [1 / M], [0], [-1 / (M * l)]])


def expm(X, terms=25):
    out = np.eye(len(X))
    term = np.eye(len(X))
    for k in range(1, terms):
        term = term @ X / k
        out = out + term
    return out


def discretise(A, B, dt):
    n, k = B.shape
    block = np.zeros((n + k, n + k))
    block[:n, :n] = A * dt
    block[:n, n:] = B * dt
    E = expm(block)
    return E[:n, :n], E[:n, n:]


def riccati(A, B, Q, R, iterations=600):
    P = Q.copy()
    for _ in range(iterations):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
    return K, P


def condensed(A, B, Q, R, P, N):
    n, k = B.shape
    Phi = np.zeros((N * n, n))
    Gamma = np.zeros((N * n, N * k))
    power = np.eye(n)
    blocks = []
    for i in range(N):
        blocks.append(power @ B)
        power = A @ power
        Phi[i * n:(i + 1) * n] = power
    for i in range(N):
        for j in range(i + 1):
            Gamma[i * n:(i + 1) * n, j * k:(j + 1) * k] = blocks[i - j]
    Qbar = np.kron(np.eye(N), Q)
    Qbar[-n:, -n:] = P
    H = Gamma.T @ Qbar @ Gamma + np.kron(np.eye(N), R)
    F = Gamma.T @ Qbar @ Phi
    return H, F


def nonlinear(x, u):
    s, c = np.sin(x[2]), np.cos(x[2])
    d = M + m * s * s
    pdd = (u + m * s * (l * x[3] ** 2 - g * c)) / d
    tdd = (-u * c - m * l * x[3] ** 2 * s * c + (M + m) * g * s) / (l * d)
    return np.array([x[1], pdd, x[3], tdd])


def simulate(policy, x0, steps):
    x = np.array(x0, dtype=float)
    xs, us = [x], []
    for k in range(steps):
        u = policy(x)
        k1 = nonlinear(x, u)
        k2 = nonlinear(x + dt / 2 * k1, u)
        x = x + dt * k2
        xs.append(x)
        us.append(u)
    return np.array(xs), np.array(us)


A, B = discretise(A_c, B_c, dt)
Q, R = np.diag([10.0, 1.0, 20.0, 1.0]), np.array([[0.1]])
K, P = riccati(A, B, Q, R)
H, F = condensed(A, B, Q, R, P, 30)
step = 1.0 / np.linalg.eigvalsh(H)[-1]
guess = np.zeros(30)


def mpc(x, limit=6.0):
    global guess
    U = np.append(guess[1:], 0.0)
    y, t = U, 1.0
    for _ in range(60):
        new = np.clip(y - step * (H @ y + F @ x), -limit, limit)
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = new + (t - 1) / t_new * (new - U)
        U, t = new, t_new
    guess = U
    return float(U[0])


start = [0.5, 0.0, 0.25, 0.0]
for name, policy in (("lqr", lambda x: float(-(K @ x)[0])), ("mpc", mpc)):
    xs, us = simulate(policy, start, 900)
    cost = np.einsum("ij,jk,ik->", xs[:-1], Q, xs[:-1]) + R[0, 0] * (us @ us)
    print(name, f"{cost:.5f} {np.abs(us).max():.5f} {np.abs(xs[300]).sum():.6f}", int((np.abs(xs[:, 2]) > 0.02).sum()))
