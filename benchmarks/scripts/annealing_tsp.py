"""Travelling salesman by simulated annealing with 2-opt moves, then a check against the nearest neighbour tour."""
import numpy as np

np.random.seed(1234)


def tour_length(dist, tour):
    total = 0.0
    for i in range(len(tour)):
        total += dist[tour[i - 1], tour[i]]
    return total


def nearest_neighbour(dist):
    n = len(dist)
    tour = [0]
    free = np.ones(n, dtype=bool)
    free[0] = False
    while len(tour) < n:
        d = np.where(free, dist[tour[-1]], np.inf)
        nxt = int(np.argmin(d))
        free[nxt] = False
        tour.append(nxt)
    return np.array(tour)


def anneal(dist, tour, T=1.0, cooling=0.99993, steps=140000):
    n = len(tour)
    tour = tour.copy()
    length = tour_length(dist, tour)
    best, best_tour = length, tour.copy()
    accepted = 0
    for step in range(steps):
        i, j = np.sort(np.random.randint(0, n, 2))
        if j - i < 1 or (i == 0 and j == n - 1):
            continue
        a, b = tour[i - 1], tour[i]
        c, d = tour[j], tour[(j + 1) % n]
        delta = dist[a, c] + dist[b, d] - dist[a, b] - dist[c, d]
        if delta < 0 or np.random.rand() < np.exp(-delta / T):
            tour[i:j + 1] = tour[i:j + 1][::-1]
            length += delta
            accepted += 1
            if length < best - 1e-12:
                best, best_tour = length, tour.copy()
        T *= cooling
        if step % 35000 == 0:
            print(step, f"{T:.6f} {length:.6f}")
    return best, best_tour, accepted


cities = np.random.rand(120, 2)
dist = np.sqrt(((cities[:, np.newaxis] - cities[np.newaxis]) ** 2).sum(axis=-1))
start = np.random.permutation(len(cities))
greedy = nearest_neighbour(dist)
best, tour, accepted = anneal(dist, start, T=0.5)
assert sorted(tour) == list(range(len(cities)))
print(f"random {tour_length(dist, start):.6f} greedy {tour_length(dist, greedy):.6f} annealed {best:.6f} {tour_length(dist, tour):.6f}", accepted)
