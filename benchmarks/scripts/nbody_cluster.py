"""A star cluster that collapses: direct N-body sum and a leapfrog, in a class."""
import numpy as np


class Cluster:
    def __init__(self, n, seed=0, softening=0.1, G=1.0):
        rng = np.random.RandomState(seed)
        self.n = n
        self.G = G
        self.softening = softening
        self.mass = 20.0 * np.ones((n, 1)) / n
        self.pos = rng.randn(n, 3)
        self.vel = rng.randn(n, 3)
        self.vel -= np.mean(self.mass * self.vel, 0) / np.mean(self.mass)
        self.acc = self.acceleration()
        self.t = 0.0
        self.history = {"t": [], "kinetic": [], "potential": []}

    def acceleration(self):
        x = self.pos[:, 0:1]
        y = self.pos[:, 1:2]
        z = self.pos[:, 2:3]
        dx = x.T - x
        dy = y.T - y
        dz = z.T - z
        inv_r3 = dx**2 + dy**2 + dz**2 + self.softening**2
        inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
        ax = self.G * (dx * inv_r3) @ self.mass
        ay = self.G * (dy * inv_r3) @ self.mass
        az = self.G * (dz * inv_r3) @ self.mass
        return np.hstack((ax, ay, az))

    def energies(self):
        kinetic = 0.5 * np.sum(np.sum(self.mass * self.vel**2))
        dx = self.pos[:, None, :] - self.pos[None, :, :]
        r = np.sqrt((dx**2).sum(axis=-1))
        inv = np.zeros_like(r)
        inv[r > 0] = 1.0 / r[r > 0]
        potential = self.G * np.sum(np.triu(-(self.mass * self.mass.T) * inv, 1))
        return kinetic, potential

    def step(self, dt):
        self.vel += self.acc * dt / 2.0
        self.pos += self.vel * dt
        self.acc = self.acceleration()
        self.vel += self.acc * dt / 2.0
        self.t += dt

    def run(self, t_end, dt, every=10):
        k = 0
        while self.t < t_end - 1e-9:
            self.step(dt)
            k += 1
            if k % every == 0:
                kin, pot = self.energies()
                self.history["t"].append(self.t)
                self.history["kinetic"].append(kin)
                self.history["potential"].append(pot)


if __name__ == "__main__":
    cluster = Cluster(300, seed=17)
    cluster.run(3.0, 0.01)
    total = np.array(cluster.history["kinetic"]) + np.array(cluster.history["potential"])
    radius = np.sqrt((cluster.pos**2).sum(axis=1))
    print(f"{len(total)} samples, energy {total[0]:.6g} to {total[-1]:.6g}, half-mass radius {np.median(radius):.6g}")
