"""Graph algorithms on adjacency matrices: Dijkstra, Floyd-Warshall, BFS, spanning tree, spectral partition."""
import heapq

import numpy as np


def random_graph(n, degree, seed):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    d = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    W = np.full((n, n), np.inf)
    for i in range(n):
        near = np.argsort(d[i])[1:degree + 1]
        W[i, near] = d[i, near]
        W[near, i] = d[i, near]
    np.fill_diagonal(W, 0)
    return points, W


def dijkstra_dense(W, source):
    n = len(W)
    dist = np.full(n, np.inf)
    prev = np.full(n, -1)
    done = np.zeros(n, dtype=bool)
    dist[source] = 0
    for _ in range(n):
        u = np.argmin(np.where(done, np.inf, dist))
        if not np.isfinite(dist[u]):
            break
        done[u] = True
        for v in np.nonzero(np.isfinite(W[u]) & ~done)[0]:
            alt = dist[u] + W[u, v]
            if alt < dist[v]:
                dist[v] = alt
                prev[v] = u
    return dist, prev


def dijkstra_heap(W, source):
    n = W.shape[0]
    neighbours = [np.flatnonzero(np.isfinite(row)) for row in W]
    dist = [float("inf")] * n
    dist[source] = 0.0
    queue = [(0.0, source)]
    while queue:
        d, u = heapq.heappop(queue)
        if d > dist[u]:
            continue
        for v in neighbours[u]:
            nd = d + W[u, v]
            if nd < dist[v]:
                dist[v] = nd
                heapq.heappush(queue, (nd, int(v)))
    return np.array(dist)


def floyd_warshall(W):
    D = W.copy()
    for k in range(len(D)):
        D = np.minimum(D, D[:, k, None] + D[None, k, :])
    return D


def bfs_levels(A, source):
    level = np.full(len(A), -1)
    frontier = np.zeros(len(A), dtype=bool)
    frontier[source] = True
    k = 0
    while frontier.any():
        level[frontier] = k
        frontier = A[frontier].any(axis=0) & (level < 0)
        k += 1
    return level


def prim(W):
    n = len(W)
    inside = np.zeros(n, dtype=bool)
    key = np.full(n, np.inf)
    key[0] = 0
    total = 0.0
    for _ in range(n):
        u = int(np.argmin(np.where(inside, np.inf, key)))
        inside[u] = True
        total += key[u]
        key = np.where(inside, key, np.minimum(key, W[u]))
    return total


points, W = random_graph(400, 8, 47)
A = np.isfinite(W) & ~np.eye(len(W), dtype=bool)
D = floyd_warshall(W)
dist, prev = dijkstra_dense(W, 0)
heap = dijkstra_heap(W, 0)
assert np.allclose(dist, heap) and np.allclose(D[0], dist)
far = int(np.argmax(dist))
path = [far]
while prev[path[-1]] >= 0:
    path.append(int(prev[path[-1]]))
level = bfs_levels(A, 0)
print(A.sum() // 2, f"{D.mean():.6f} {D.max():.6f}", far, len(path), level.max(), np.bincount(level)[:4].tolist())
lap = np.diag(A.sum(axis=1)) - A.astype(float)
values, vectors = np.linalg.eigh(lap)
side = vectors[:, 1] > np.median(vectors[:, 1])
cut = A[side][:, ~side].sum()
print(f"tree {prim(W):.6f}; second eigenvalue {values[1]:.6f}; cut {cut}; even {side.sum()}")
