"""Ant colony on a knapsack and a particle swarm: loops over individuals, choices by weights, and lists of arrays."""
import random

import numpy as np

random.seed(3)
rng = np.random.default_rng(3)


class Ant:
    def __init__(self, n):
        self.taken = np.zeros(n, dtype=bool)
        self.value = 0.0
        self.weight = 0.0


class Colony:
    def __init__(self, values, weights, capacity, ants=15, rho=0.1, alpha=1.0, beta=2.0):
        self.values, self.weights, self.capacity = values, weights, capacity
        self.n_ants, self.rho, self.alpha, self.beta = ants, rho, alpha, beta
        self.pheromone = np.ones(len(values))
        self.attraction = values / weights
        self.best = None
        self.log = []

    def walk(self):
        ant = Ant(len(self.values))
        desire = self.pheromone**self.alpha * self.attraction**self.beta
        while True:
            possible = ~ant.taken & (self.weights <= self.capacity - ant.weight)
            if not possible.any():
                return ant
            p = np.where(possible, desire, 0.0)
            p /= p.sum()
            k = np.searchsorted(np.cumsum(p), rng.random() * (1 - 1e-12))
            k = min(int(k), len(p) - 1)
            if not possible[k]:
                k = int(np.argmax(p))
            ant.taken[k] = True
            ant.value += self.values[k]
            ant.weight += self.weights[k]

    def iterate(self):
        ants = [self.walk() for _ in range(self.n_ants)]
        ants.sort(key=lambda a: -a.value)
        if self.best is None or ants[0].value > self.best.value:
            self.best = ants[0]
        self.pheromone *= 1 - self.rho
        for rank, ant in enumerate(ants[:5]):
            self.pheromone[ant.taken] += (5 - rank) / 15 * ant.value / self.values.sum()
        self.log.append(np.mean([a.value for a in ants]))


def knapsack_exact(values, weights, capacity):
    best = np.zeros(capacity + 1, dtype=int)
    for v, w in zip(values, weights):
        best[w:] = np.maximum(best[w:], best[:capacity + 1 - w] + v)
    return best[-1]


def particle_swarm(f, dim, particles, steps):
    x = [np.array([random.uniform(-10, 10) for _ in range(dim)]) for _ in range(particles)]
    v = [np.zeros(dim) for _ in range(particles)]
    best = [p.copy() for p in x]
    best_f = [f(p) for p in x]
    g = int(np.argmin(best_f))
    for step in range(steps):
        for i in range(particles):
            r1, r2 = random.random(), random.random()
            v[i] = 0.72 * v[i] + 1.49 * r1 * (best[i] - x[i]) + 1.49 * r2 * (best[g] - x[i])
            x[i] = np.clip(x[i] + v[i], -10, 10)
            fx = f(x[i])
            if fx < best_f[i]:
                best[i], best_f[i] = x[i].copy(), fx
                if fx < best_f[g]:
                    g = i
    return best[g], best_f[g]


values = rng.integers(10, 100, 120)
weights = rng.integers(5, 60, 120)
capacity = 900
colony = Colony(values.astype(float), weights.astype(float), capacity)
for it in range(100):
    colony.iterate()
exact = knapsack_exact(values, weights, capacity)
print("ants", int(colony.best.value), "of", exact, f"{colony.log[0]:.4f} {colony.log[-1]:.4f}", int(colony.best.weight))


def griewank(p):
    return 1 + np.sum(p**2) / 4000 - np.prod(np.cos(p / np.sqrt(np.arange(1, len(p) + 1))))


p, fp = particle_swarm(griewank, 4, 25, 900)
print("swarm", fp < 0.1, f"{random.random():.6f}")
