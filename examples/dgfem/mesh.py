"""A box of tetrahedra, periodic in all directions: geometry, and the matching of face nodes."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from .reference import CORNERS, FACES, Tetrahedron, tetrahedron


@dataclass(frozen=True)
class Mesh:
    """K tetrahedra with n nodes each, of which m on each of four faces.

    Attributes
    ----------
    element : Tetrahedron
    sizes : tuple of float
        Of the box, which begins at 0.
    vertices : array (K, 4, 3)
    x : array (3, n, K)
        Positions of nodes.
    metric : array (3, 3, K)
        Derivatives of the reference coordinates (first) along x, y, z (second).
    jacobian : array (K,)
        Volume for each volume of the reference tetrahedron.
    normals : array (3, 4, 1, K)
    scale : array (4, 1, K)
        Area of a face for each volume, as `Tetrahedron.lift` takes it.
    inside, outside : array (4 m,), array (4 m, K)
        Nodes of an element that are on its faces, and places in an array (n, K) of those that they meet.
    size : float
        The least height of a tetrahedron.
    """

    element: Tetrahedron
    sizes: tuple
    vertices: np.ndarray
    x: np.ndarray
    metric: np.ndarray
    jacobian: np.ndarray
    normals: np.ndarray
    scale: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    size: float


def box(order, cells, sizes=(1.0, 1.0, 1.0), bend=0.0):
    """Return a mesh of a box of cells, each cut into six tetrahedra around its diagonal (Kuhn, Freudenthal).

    Parameters
    ----------
    order : int
        Of polynomials, 1 to 4.
    cells : int or tuple of int
        In each direction, 2 at least.
    sizes : tuple of float
    bend : float
        How far vertices are moved, in parts of a cell: tetrahedra of all shapes.

    Raises
    ------
    ValueError
        For a box of nothing, or one whose tetrahedra would meet themselves or be turned inside out.
    """
    cells = (cells,) * 3 if isinstance(cells, int) else tuple(cells)
    if len(cells) != 3 or len(sizes) != 3 or min(sizes) <= 0:
        raise ValueError(f"a box of {cells} cells and the sizes {sizes} has no tetrahedra")
    if min(cells) < 2:
        raise ValueError(
            f"{' x '.join(map(str, cells))} cells: a periodic box has 2 in each direction at least"
        )
    element = tetrahedron(order)
    lattice = _lattice(cells)
    unit = lattice * (np.array(sizes) / cells)
    phase = 2 * np.pi * lattice / cells
    wave = np.sin(phase + np.roll(phase, 1, axis=-1)) * np.cos(np.roll(phase, 2, axis=-1))
    vertices = unit + bend * np.array(sizes) / cells * wave

    edges = (vertices[:, 1:] - vertices[:, :1]) / 2  # K, reference, physical
    jacobian = np.linalg.det(edges)
    if jacobian.min() <= 0:
        raise ValueError(f"bend={bend}: tetrahedra are turned inside out")
    metric = np.linalg.inv(edges).transpose(2, 1, 0)
    slopes = np.stack([-metric[2], -metric[1], metric.sum(axis=0), -metric[0]], axis=1)
    scale = np.sqrt((slopes**2).sum(axis=0))
    weights = _weights(element.nodes)
    return Mesh(
        element=element,
        sizes=tuple(map(float, sizes)),
        vertices=vertices,
        x=np.ascontiguousarray(np.einsum("nv,kvd->dnk", weights, vertices)),
        metric=np.ascontiguousarray(metric),
        jacobian=jacobian,
        normals=np.ascontiguousarray((slopes / scale)[:, :, None, :]),
        scale=np.ascontiguousarray(scale[:, None, :]),
        inside=element.faces.ravel(),
        outside=_outside(element, lattice, cells, weights),
        size=float(2 / scale.max()),
    )


def _lattice(cells):
    """Return the integer lattice coordinates of the tetrahedra's corners: K x 4 x 3."""
    paths = []
    for order in permutations(range(3)):
        corners = np.zeros((4, 3), int)
        for k, axis in enumerate(order):
            corners[k + 1 :, axis] += 1
        if np.linalg.det((corners[1:] - corners[0]).astype(float)) < 0:
            corners[[2, 3]] = corners[[3, 2]]
        paths.append(corners)
    origins = np.stack(np.meshgrid(*map(np.arange, cells), indexing="ij"), axis=-1).reshape(-1, 1, 1, 3)
    return (origins + np.array(paths)).reshape(-1, 4, 3)


def _weights(nodes):
    """Return the barycentric coordinates of nodes: n x 4."""
    inverse = np.linalg.inv(np.hstack([CORNERS, np.ones((4, 1))]))
    return np.hstack([nodes, np.ones((len(nodes), 1))]) @ inverse


def _outside(element, lattice, cells, weights):
    """Return for each face node the flat index in an array (n, K) of the neighbour's matching node: (4 m,
    K)."""
    count, m = len(lattice), element.faces.shape[1]
    middles = lattice[:, FACES].sum(axis=2).reshape(-1, 3)  # three times the middle of each face
    keys = np.ravel_multi_index((middles % (3 * np.array(cells))).T, 3 * np.array(cells))
    order = np.argsort(keys, kind="stable")
    first, second = order[::2], order[1::2]
    if not np.array_equal(keys[first], keys[second]) or len(np.unique(keys)) != len(first):
        raise ValueError("faces of tetrahedra do not meet in pairs")
    other = np.empty(4 * count, int)
    other[first], other[second] = second, first

    x = np.einsum("nv,kvd->knd", weights, lattice.astype(float))[:, element.faces].reshape(4 * count, m, 3)
    shift = (middles - middles[other]) / 3
    distance = np.abs(x[:, :, None] - x[other][:, None] - shift[:, None, None]).sum(axis=-1)
    match = distance.argmin(axis=2)
    if np.take_along_axis(distance, match[:, :, None], axis=2).max() > 1e-8:
        raise ValueError("nodes of faces do not meet")
    elements, faces = np.divmod(other, 4)
    places = element.faces[faces[:, None], match] * count + elements[:, None]
    return np.ascontiguousarray(places.reshape(count, 4 * m).T)


def integral(mesh, values):
    """Return the integral of values (n, K) over the box."""
    return float((mesh.element.mass @ values).sum(axis=0) @ mesh.jacobian)


def error(mesh, values, exact):
    """Return the L2 norm of the error of all fields together, relative to the box's volume."""
    off = values - exact
    square = float((off * (mesh.element.mass @ off) * mesh.jacobian).sum())
    return (square / float(np.prod(mesh.sizes))) ** 0.5
