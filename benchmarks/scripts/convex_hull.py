"""Computational geometry: hulls, points in polygons, closest pair, Voronoi areas by sampling, line intersections."""
import numpy as np


def cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def convex_hull(points):
    pts = points[np.lexsort((points[:, 1], points[:, 0]))]
    lower = []
    for p in pts:
        while len(lower) >= 2 and cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    upper = []
    for p in pts[::-1]:
        while len(upper) >= 2 and cross(upper[-2], upper[-1], p) <= 0:
            upper.pop()
        upper.append(p)
    return np.array(lower[:-1] + upper[:-1])


def area(poly):
    x, y = poly.T
    return 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))


def inside(poly, pts):
    result = np.zeros(len(pts), dtype=bool)
    j = len(poly) - 1
    for i in range(len(poly)):
        xi, yi = poly[i]
        xj, yj = poly[j]
        crosses = ((yi > pts[:, 1]) != (yj > pts[:, 1])) & (pts[:, 0] < (xj - xi) * (pts[:, 1] - yi) / (yj - yi) + xi)
        result ^= crosses
        j = i
    return result


def closest_pair(points):
    pts = points[np.argsort(points[:, 0])]

    def rec(p):
        if len(p) <= 3:
            best = np.inf
            for i in range(len(p)):
                for j in range(i + 1, len(p)):
                    best = min(best, np.hypot(*(p[i] - p[j])))
            return best
        mid = len(p) // 2
        d = min(rec(p[:mid]), rec(p[mid:]))
        strip = p[np.abs(p[:, 0] - p[mid, 0]) < d]
        strip = strip[np.argsort(strip[:, 1])]
        for i in range(len(strip)):
            for j in range(i + 1, min(i + 8, len(strip))):
                if strip[j, 1] - strip[i, 1] >= d:
                    break
                d = min(d, np.linalg.norm(strip[i] - strip[j]))
        return d

    return rec(pts)


def segments_cross(a, b, c, d):
    r, s = b - a, d - c
    den = r[0] * s[1] - r[1] * s[0]
    if den == 0:
        return None
    t = ((c - a)[0] * s[1] - (c - a)[1] * s[0]) / den
    u = ((c - a)[0] * r[1] - (c - a)[1] * r[0]) / den
    return a + t * r if 0 <= t <= 1 and 0 <= u <= 1 else None


rng = np.random.default_rng(58)
points = rng.normal(size=(60000, 2)) @ np.array([[2.0, 0.3], [0.0, 1.0]])
hull = convex_hull(points)
theta = np.linspace(0, 2 * np.pi, 60, endpoint=False)
star = np.c_[np.cos(theta), np.sin(theta)] * (2 + np.cos(5 * theta))[:, None]
sample = rng.uniform(-3, 3, (100_000, 2))
share = inside(star, sample).mean() * 36
print(len(hull), f"{area(hull):.6f} {area(star):.6f} {share:.4f} {closest_pair(points[:25000]):.8f}")
ends = rng.random((110, 2, 2))
found = []
for i in range(len(ends)):
    for j in range(i):
        p = segments_cross(ends[i, 0], ends[i, 1], ends[j, 0], ends[j, 1])
        if p is not None:
            found.append(p)
found = np.array(found)
seeds = rng.random((40, 2))
grid = np.stack(np.meshgrid(np.linspace(0, 1, 250), np.linspace(0, 1, 250)), axis=-1).reshape(-1, 2)
owner = np.argmin(((grid[:, None, :] - seeds) ** 2).sum(axis=2), axis=1)
cells = np.bincount(owner, minlength=40) / len(grid)
print(len(found), found.mean(axis=0).round(6), f"{cells.max():.5f} {cells.std():.6f}")
