"""Finite elements of a course in structures: a truss and a beam, assembled element by element."""
import numpy as np


class Truss:
    def __init__(self, nodes, bars, E=210e9, A=4e-4, rho=7850.0):
        self.nodes = np.asarray(nodes, dtype=float)
        self.bars = bars
        self.E, self.A, self.rho = E, A, rho

    def element(self, i, j):
        d = self.nodes[j] - self.nodes[i]
        L = np.linalg.norm(d)
        c, s = d / L
        T = np.array([-c, -s, c, s])
        k = self.E * self.A / L * np.outer(T, T)
        m = self.rho * self.A * L / 6 * np.array([[2, 0, 1, 0], [0, 2, 0, 1], [1, 0, 2, 0], [0, 1, 0, 2]])
        return k, m, T, L

    def assemble(self):
        n = 2 * len(self.nodes)
        K, M = np.zeros((n, n)), np.zeros((n, n))
        for i, j in self.bars:
            k, m, _, _ = self.element(i, j)
            dofs = [2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
            K[np.ix_(dofs, dofs)] += k
            for a in range(4):
                for b in range(4):
                    M[dofs[a], dofs[b]] += m[a, b]
        return K, M

    def solve(self, K, loads, fixed):
        free = np.setdiff1d(np.arange(len(K)), fixed)
        u = np.zeros(len(K))
        u[free] = np.linalg.solve(K[np.ix_(free, free)], loads[free])
        return u, K @ u - loads

    def stresses(self, u):
        out = []
        for i, j in self.bars:
            _, _, T, L = self.element(i, j)
            out.append(self.E / L * (T @ u[[2 * i, 2 * i + 1, 2 * j, 2 * j + 1]]))
        return np.array(out)


def bridge(panels, width=2.0, height=2.5):
    bottom = [(width * k, 0.0) for k in range(panels + 1)]
    top = [(width * (k + 0.5), height) for k in range(panels)]
    nodes = bottom + top
    n = panels + 1
    bars = [(k, k + 1) for k in range(panels)] + [(n + k, n + k + 1) for k in range(panels - 1)]
    bars += [(k, n + k) for k in range(panels)] + [(k + 1, n + k) for k in range(panels)]
    return nodes, bars


def beam_frequencies(n, L=3.0, EI=2.0e4, rhoA=5.0):
    h = L / n
    k = EI / h**3 * np.array([[12, 6 * h, -12, 6 * h], [6 * h, 4 * h**2, -6 * h, 2 * h**2],
                              [-12, -6 * h, 12, -6 * h], [6 * h, 2 * h**2, -6 * h, 4 * h**2]])
    m = rhoA * h / 420 * np.array([[156, 22 * h, 54, -13 * h], [22 * h, 4 * h**2, 13 * h, -3 * h**2],
                                   [54, 13 * h, 156, -22 * h], [-13 * h, -3 * h**2, -22 * h, 4 * h**2]])
    K, M = np.zeros((2 * n + 2, 2 * n + 2)), np.zeros((2 * n + 2, 2 * n + 2))
    for e in range(n):
        s = slice(2 * e, 2 * e + 4)
        K[s, s] += k
        M[s, s] += m
    K, M = K[2:, 2:], M[2:, 2:]
    C = np.linalg.inv(np.linalg.cholesky(M))
    return np.sqrt(np.linalg.eigvalsh(C @ K @ C.T)[:4]) / (2 * np.pi)


for panels in (6, 24, 40):
    nodes, bars = bridge(panels)
    t = Truss(nodes, bars)
    K, M = t.assemble()
    supports = [0, 1, 2 * panels + 1]
    loads = np.zeros(len(K))
    loads[3:2 * panels:2] = -20e3 / panels
    u, reactions = t.solve(K, loads, supports)
    sigma = t.stresses(u)
    print(panels, len(bars), f"{u.min():.6e} {sigma.max() / 1e6:.5f} {sigma.min() / 1e6:.5f} {reactions[supports].sum():.4f}")

# a load that moves over the bridge
worst = np.zeros(len(bars))
for node in range(1, panels):
    loads = np.zeros(len(K))
    loads[2 * node + 1] = -50e3
    u, _ = t.solve(K, loads, supports)
    worst = np.maximum(worst, np.abs(t.stresses(u)))
print("envelope", f"{worst.max() / 1e6:.5f} {worst.mean() / 1e6:.5f}")
for n in (8, 32, 64):
    print("beam", n, np.round(beam_frequencies(n), 3))
