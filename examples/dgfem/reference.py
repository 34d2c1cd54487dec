"""The reference tetrahedron: nodes, differentiation matrices, and contributions of faces.

Its corners are (-1, -1, -1), (1, -1, -1), (-1, 1, -1) and (-1, -1, 1); ``p`` is the order of polynomials.
"""

from dataclasses import dataclass
from math import factorial, sqrt

import numpy as np

CORNERS = np.array([[-1.0, -1, -1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
FACES = np.array([[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]])
WARPS = (0, 0, 0, 0.1002, 1.1332)  # the best blending of nodes by order (Warburton, 2006)


@dataclass(frozen=True)
class Tetrahedron:
    """The nodes and matrices of the reference tetrahedron of order p.

    Attributes
    ----------
    order : int
    nodes : array (n, 3)
    derivatives : array (3, n, n)
        Values at nodes to derivatives in each direction at nodes.
    faces : array (4, m)
        The nodes on each face.
    lift : array (n, 4 m)
        Values at face nodes to what their integral adds at nodes, for faces as large as the volume.
    mass : array (n, n)
        Integrals of products.
    vandermonde : array (n, n)
    """

    order: int
    nodes: np.ndarray
    derivatives: np.ndarray
    faces: np.ndarray
    lift: np.ndarray
    mass: np.ndarray
    vandermonde: np.ndarray


def tetrahedron(order):
    """Return the nodes and matrices for an order from 1 to 4."""
    if order not in (1, 2, 3, 4):
        raise ValueError(f"order {order}: there are orders 1 to 4")
    nodes = _nodes(order)
    v = basis(order, nodes)
    derivatives = np.stack([np.linalg.solve(v.T, g.T).T for g in _gradients(order, nodes)])
    r, s, t = nodes.T
    on = [np.abs(t + 1), np.abs(s + 1), np.abs(r + s + t + 1), np.abs(r + 1)]
    faces = np.array([np.flatnonzero(distance < 1e-10) for distance in on])
    m = faces.shape[1]
    integrals = np.zeros((len(nodes), 4 * m))
    for f in range(4):
        plane = nodes[faces[f]][:, ((0, 1), (0, 2), (1, 2), (1, 2))[f]]
        w = _triangle_basis(order, plane)
        integrals[faces[f], f * m : (f + 1) * m] = np.linalg.inv(w @ w.T)
    return Tetrahedron(order, nodes, derivatives, faces, v @ (v.T @ integrals), np.linalg.inv(v @ v.T), v)


def jacobi(x, a, b, n):
    """Return the values of the Jacobi polynomial of degree n, normalised on [-1, 1]."""
    gamma0 = 2 ** (a + b + 1) / (a + b + 1) * factorial(a) * factorial(b) / factorial(a + b)
    before = np.full_like(x, 1 / sqrt(gamma0))
    if n == 0:
        return before
    gamma1 = (a + 1) * (b + 1) / (a + b + 3) * gamma0
    now = ((a + b + 2) * x / 2 + (a - b) / 2) / sqrt(gamma1)
    last = 2 / (2 + a + b) * sqrt((a + 1) * (b + 1) / (a + b + 3))
    for i in range(1, n):
        h = 2 * i + a + b
        up = sqrt((i + 1) * (i + 1 + a + b) * (i + 1 + a) * (i + 1 + b) / (h + 1) / (h + 3)) * 2 / (h + 2)
        shift = -(a * a - b * b) / h / (h + 2)
        before, now = now, ((x - shift) * now - last * before) / up
        last = up
    return now


def _jacobi_derivative(x, a, b, n):
    return np.zeros_like(x) if n == 0 else sqrt(n * (n + a + b + 1)) * jacobi(x, a + 1, b + 1, n - 1)


def _degrees(order):
    top = range(order + 1)
    return [(i, j, k) for i in top for j in top for k in top if i + j + k <= order]


def _collapsed(nodes):
    r, s, t = nodes.T
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(np.abs(s + t) > 1e-12, 2 * (1 + r) / (-s - t) - 1, -1.0)
        b = np.where(np.abs(1 - t) > 1e-12, 2 * (1 + s) / (1 - t) - 1, -1.0)
    return a, b, t.copy()


def basis(order, nodes):
    """Return the values of orthonormal polynomials (columns) at nodes (rows)."""
    a, b, c = _collapsed(nodes)
    return np.stack(
        [
            2 * sqrt(2) * jacobi(a, 0, 0, i) * jacobi(b, 2 * i + 1, 0, j)
            * jacobi(c, 2 * (i + j) + 2, 0, k) * (1 - b) ** i * (1 - c) ** (i + j)
            for i, j, k in _degrees(order)
        ],
        axis=1,
    )  # fmt: skip


def _gradients(order, nodes):
    """Return the derivatives of the basis, by the chain rule in collapsed coordinates."""
    a, b, c = _collapsed(nodes)
    found = [[], [], []]
    for i, j, k in _degrees(order):
        fa, da = jacobi(a, 0, 0, i), _jacobi_derivative(a, 0, 0, i)
        gb, db = jacobi(b, 2 * i + 1, 0, j), _jacobi_derivative(b, 2 * i + 1, 0, j)
        hc, dc = jacobi(c, 2 * (i + j) + 2, 0, k), _jacobi_derivative(c, 2 * (i + j) + 2, 0, k)
        half_b, half_c = (1 - b) / 2, (1 - c) / 2
        dr = da * gb * hc * (half_b ** (i - 1) if i > 0 else 1) * (half_c ** (i + j - 1) if i + j > 0 else 1)
        inner = db * half_b**i - (i / 2 * gb * half_b ** (i - 1) if i > 0 else 0)
        ds = (1 + a) / 2 * dr
        extra = fa * inner * hc * (half_c ** (i + j - 1) if i + j > 0 else 1)
        ds = ds + extra
        outer = dc * half_c ** (i + j) - ((i + j) / 2 * hc * half_c ** (i + j - 1) if i + j > 0 else 0)
        dt = (1 + a) / 2 * dr + (1 + b) / 2 * extra + fa * gb * outer * half_b**i
        for into, value in zip(found, (dr, ds, dt), strict=True):
            into.append(value * 2 ** (2 * i + j + 1.5))
    return [np.stack(columns, axis=1) for columns in found]


def _triangle_basis(order, nodes):
    r, s = nodes.T
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(np.abs(1 - s) > 1e-12, 2 * (1 + r) / (1 - s) - 1, -1.0)
    return np.stack(
        [
            sqrt(2) * jacobi(a, 0, 0, i) * jacobi(s, 2 * i + 1, 0, j) * (1 - s) ** i
            for i in range(order + 1) for j in range(order + 1 - i)
        ],
        axis=1,
    )  # fmt: skip


# ---- nodes: equidistant ones, moved so that interpolation on faces and edges is good ----------------------
def _nodes(order):
    top = range(order + 1)
    steps = [(i, j, k) for i in top for j in top for k in top if i + j + k <= order]
    l2, l3, l4 = np.array(steps, float).T / order
    l1 = 1 - l2 - l3 - l4
    weights = np.stack([l1, l2, l3, l4], axis=1)
    nodes = weights @ CORNERS
    # On edges Gauss-Lobatto nodes, blended into faces and the volume.
    gauss = _gauss_lobatto(order)
    moved = np.zeros_like(nodes)
    for i in range(4):
        for j in range(i + 1, 4):
            li, lj = weights[:, i], weights[:, j]
            x = lj - li
            shift = _edge_shift(order, gauss, x)
            with np.errstate(divide="ignore", invalid="ignore"):
                bubble = np.where(1 - x * x > 1e-12, 4 * li * lj / (1 - x * x), 0.0)
            others = [k for k in range(4) if k not in (i, j)]
            blend = bubble * (1 + (WARPS[order] * weights[:, others].sum(axis=1)) ** 2)
            moved += (blend * shift)[:, None] * (CORNERS[j] - CORNERS[i]) / 2
    return nodes + moved


def _gauss_lobatto(order):
    interior = np.polynomial.legendre.Legendre.basis(order).deriv().roots() if order > 1 else []
    return np.array([-1.0, *np.real(interior), 1.0])


def _edge_shift(order, gauss, x):
    """Return the displacement of the point x of an edge: interpolated from those of equidistant nodes."""
    even = np.linspace(-1, 1, order + 1)
    total = np.zeros_like(x)
    for i in range(order + 1):
        others = np.delete(even, i)
        total += (gauss[i] - even[i]) * np.prod([(x - e) / (even[i] - e) for e in others], axis=0)
    return total
