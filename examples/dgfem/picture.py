"""Pictures of a slice through a solution: the tetrahedra's polynomials, evaluated on a plane."""

import numpy as np

from .reference import CORNERS, basis


def plane(mesh, field, height, points=200):
    """Return a field (n, K) at points x points positions in the plane z = height of a box that is not
    bent."""
    cells = np.array([len(np.unique(np.round(mesh.vertices[:, 0, axis], 9))) for axis in range(3)])
    sides = [(np.arange(points) + 0.5) * size / points for size in mesh.sizes[:2]]
    x = np.stack([*np.meshgrid(*sides, indexing="ij"), np.full((points, points), height)], axis=-1).reshape(
        -1, 3
    )
    cell = np.minimum((x / mesh.sizes * cells).astype(int), cells - 1)
    first = 6 * np.ravel_multi_index(cell.T, cells)
    values = np.full(len(x), np.nan)
    to_modes = np.linalg.inv(mesh.element.vandermonde)
    for k in range(6):  # the tetrahedra of a cell
        element = first + k
        corner = mesh.vertices[element]
        weights = np.linalg.solve(
            (corner[:, 1:] - corner[:, :1]).transpose(0, 2, 1), (x - corner[:, 0])[:, :, None]
        )
        weights = weights[:, :, 0]
        here = (weights.min(axis=1) > -1e-9) & (weights.sum(axis=1) < 1 + 1e-9)
        at = CORNERS[0] + weights[here] @ (CORNERS[1:] - CORNERS[0])
        modes = to_modes @ field[:, element[here]]
        values[here] = (basis(mesh.element.order, at).T * modes).sum(axis=0)
    return values.reshape(points, points)


def draw(path, mesh, field, title):
    """Save a picture of the slice through the middle of the box.

    Raises
    ------
    ModuleNotFoundError
        Without matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4.5), layout="constrained")
    axes = figure.subplots()
    height = mesh.sizes[2] / 2 * (1 + 1e-9)
    image = axes.imshow(
        plane(mesh, field, height).T,
        origin="lower",
        extent=(0, mesh.sizes[0], 0, mesh.sizes[1]),
        cmap="RdBu_r",
    )
    axes.set(xlabel="x", ylabel="y", title=title)
    figure.colorbar(image, ax=axes)
    figure.savefig(path, dpi=72)
