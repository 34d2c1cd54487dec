"""A genetic algorithm on three test functions: tournament, blend crossover, mutation, elite."""
import numpy as np


def sphere(x):
    return np.sum(x**2, axis=1)


def rastrigin(x):
    return 10 * x.shape[1] + np.sum(x**2 - 10 * np.cos(2 * np.pi * x), axis=1)


def ackley(x):
    n = x.shape[1]
    a = -20 * np.exp(-0.2 * np.sqrt(np.sum(x**2, axis=1) / n))
    return a - np.exp(np.sum(np.cos(2 * np.pi * x), axis=1) / n) + 20 + np.e


class GeneticAlgorithm:
    def __init__(self, fitness, dim, pop_size=300, bounds=(-5.12, 5.12), p_mut=0.1, elite=4, seed=0):
        self.fitness = fitness
        self.dim = dim
        self.pop_size = pop_size
        self.lo, self.hi = bounds
        self.p_mut = p_mut
        self.elite = elite
        self.rng = np.random.default_rng(seed)
        self.pop = self.rng.uniform(self.lo, self.hi, (pop_size, dim))
        self.best_per_generation = []

    def select(self, score, k=3):
        rivals = self.rng.integers(0, self.pop_size, (self.pop_size, k))
        winner = np.argmin(score[rivals], axis=1)
        return self.pop[rivals[np.arange(self.pop_size), winner]]

    def cross(self, parents):
        children = parents.copy()
        for i in range(0, self.pop_size - 1, 2):
            if self.rng.random() < 0.8:
                alpha = self.rng.uniform(-0.25, 1.25, self.dim)
                a, b = parents[i], parents[i + 1]
                children[i] = alpha * a + (1 - alpha) * b
                children[i + 1] = alpha * b + (1 - alpha) * a
        return children

    def mutate(self, children, generation):
        mask = self.rng.random(children.shape) < self.p_mut
        noise = self.rng.normal(0, 0.5 * 0.99**generation, children.shape)
        children[mask] += noise[mask]
        return np.clip(children, self.lo, self.hi)

    def run(self, generations):
        for g in range(generations):
            score = self.fitness(self.pop)
            order = np.argsort(score, kind="stable")
            self.best_per_generation.append(score[order[0]])
            elite = self.pop[order[:self.elite]].copy()
            children = self.mutate(self.cross(self.select(score)), g)
            children[:self.elite] = elite
            self.pop = children
        return self.pop[np.argmin(self.fitness(self.pop))]


for f in (sphere, rastrigin, ackley):
    ga = GeneticAlgorithm(f, 10, seed=5)
    x = ga.run(300)
    history = np.array(ga.best_per_generation)
    print(f.__name__, f"{history[0]:.5f} {history[50]:.5f} {np.log10(history[-1] + 1e-3):.4f} {np.abs(x).max():.3f}", int((np.diff(history) < 0).sum() > 50))
