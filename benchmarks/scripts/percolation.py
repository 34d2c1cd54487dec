"""Monte Carlo: percolation with union-find, pi in three ways, random walks, Buffon's needle."""
import numpy as np


class UnionFind:
    def __init__(self, n):
        self.parent = np.arange(n)
        self.size = np.ones(n, dtype=int)

    def find(self, i):
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def union(self, i, j):
        a, b = self.find(i), self.find(j)
        if a == b:
            return
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]


def percolation_threshold(n, rng):
    open_ = np.zeros((n, n), dtype=bool)
    uf = UnionFind(n * n + 2)
    top, bottom = n * n, n * n + 1
    for count, site in enumerate(rng.permutation(n * n), 1):
        i, j = divmod(int(site), n)
        open_[i, j] = True
        if i == 0:
            uf.union(site, top)
        if i == n - 1:
            uf.union(site, bottom)
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            a, b = i + di, j + dj
            if 0 <= a < n and 0 <= b < n and open_[a, b]:
                uf.union(site, a * n + b)
        if uf.find(top) == uf.find(bottom):
            return count / (n * n)
    return 1.0


rng = np.random.default_rng(10)
thresholds = [percolation_threshold(32, rng) for _ in range(50)]
print("percolation %.5f +- %.5f" % (np.mean(thresholds), np.std(thresholds) / np.sqrt(50)))

n = 2_000_000
x, y = np.random.RandomState(0).rand(2, n)
inside = x**2 + y**2 <= 1
running = 4 * np.cumsum(inside) / np.arange(1, n + 1)
print("pi %.6f, after 1000 %.6f, error %.6f" % (running[-1], running[999], 4 * inside.std() / np.sqrt(n)))
needles = rng.uniform(0, 0.5, n)
angles = rng.uniform(0, np.pi / 2, n)
print("buffon %.6f" % (2.0 / np.mean(needles <= 0.5 * np.sin(angles))))
print("mean of sqrt %.6f" % (4 * np.mean(np.sqrt(1 - x**2))))

steps = rng.choice([-1, 1], size=(1500, 1000))
walks = steps.cumsum(axis=1)
returns = (walks == 0).sum(axis=1)
hit = np.abs(walks) >= 25
first = np.where(hit.any(axis=1), hit.argmax(axis=1), -1)
print("walks", walks[:, -1].std().round(5), returns.mean().round(5), (first < 0).sum(), first[first >= 0].mean().round(4))
