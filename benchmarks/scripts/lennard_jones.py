"""Molecular dynamics of a Lennard-Jones fluid: pair loop over rows, thermostat, radial distribution."""
import numpy as np


class LJSystem:
    def __init__(self, n_side=6, density=0.7, temperature=1.0, dt=0.004, seed=0):
        self.N = n_side**3
        self.L = (self.N / density) ** (1 / 3)
        self.dt = dt
        self.T = temperature
        rng = np.random.default_rng(seed)
        g = (np.arange(n_side) + 0.5) * self.L / n_side
        self.x = np.array([(a, b, c) for a in g for b in g for c in g])
        self.x += 0.05 * rng.standard_normal(self.x.shape)
        self.v = rng.standard_normal((self.N, 3)) * np.sqrt(temperature)
        self.v -= self.v.mean(axis=0)
        self.rc2 = min(2.5, self.L / 2) ** 2
        self.f, self.pe, self.virial = self.forces()

    def forces(self):
        f = np.zeros_like(self.x)
        pe = virial = 0.0
        for i in range(self.N - 1):
            d = self.x[i] - self.x[i + 1:]
            d -= self.L * np.round(d / self.L)
            r2 = np.sum(d * d, axis=1)
            near = r2 < self.rc2
            if not near.any():
                continue
            d, r2 = d[near], r2[near]
            inv6 = 1.0 / r2**3
            w = 48 * inv6 * (inv6 - 0.5)
            fij = (w / r2)[:, None] * d
            f[i] += fij.sum(axis=0)
            f[i + 1:][near] -= fij
            pe += np.sum(4 * inv6 * (inv6 - 1))
            virial += w.sum()
        return f, pe, virial

    def step(self):
        self.v += 0.5 * self.dt * self.f
        self.x = (self.x + self.dt * self.v) % self.L
        self.f, self.pe, self.virial = self.forces()
        self.v += 0.5 * self.dt * self.f

    def temperature(self):
        return (self.v**2).sum() / (3 * self.N - 3)

    def rescale(self):
        self.v *= np.sqrt(self.T / self.temperature())

    def rdf(self, bins=40):
        d = self.x[:, None] - self.x[None]
        d -= self.L * np.round(d / self.L)
        r = np.sqrt((d**2).sum(-1))[np.triu_indices(self.N, 1)]
        hist, edges = np.histogram(r, bins=bins, range=(0, self.L / 2))
        shell = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
        return edges[:-1], hist / (shell * self.N / self.L**3 * self.N / 2)


s = LJSystem(n_side=5, seed=41)
for k in range(160):
    s.step()
    if k < 80 and k % 20 == 0:
        s.rescale()
        print(k, f"T {s.temperature():.5f} U {s.pe / s.N:.5f}")
r, g = s.rdf()
print(f"T {s.temperature():.4f} U {s.pe / s.N:.4f} P {(s.N * s.temperature() + s.virial / 3) / s.L**3:.3f} peak {g.max():.2f} at {r[g.argmax()]:.3f}; momentum {np.abs(s.v.sum(axis=0)).max() < 1e-9}")
