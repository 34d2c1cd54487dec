"""Operators that all equations use: derivatives, values on both sides of faces, integrals over faces.

Fields are arrays (f, n, K), values on faces (f, 4 m, K).  ``geometry`` is the tuple of arrays that
`geometry_of` makes of a mesh.
"""

import numpy as np


def geometry_of(mesh):
    """Return the arrays of a mesh that the right-hand sides read; see `Mesh`."""
    m, count = mesh.element.faces.shape[1], mesh.jacobian.size
    normals = np.ascontiguousarray(np.broadcast_to(mesh.normals, (3, 4, m, count)).reshape(3, 4 * m, count))
    scale = np.ascontiguousarray(np.broadcast_to(mesh.scale, (4, m, count)).reshape(4 * m, count))
    node, element = np.divmod(mesh.outside, count)
    derivatives, lift = mesh.element.derivatives, mesh.element.lift
    return derivatives, lift, mesh.metric, normals, scale, mesh.inside, node, element


def divergence(geometry, x, y, z):
    """Return the divergence: derivatives of fields x along x, y along y, z along z, added."""
    d, _, g, _, _, _, _, _ = geometry
    return (
        d[0] @ (g[0, 0] * x + g[0, 1] * y + g[0, 2] * z)
        + d[1] @ (g[1, 0] * x + g[1, 1] * y + g[1, 2] * z)
        + d[2] @ (g[2, 0] * x + g[2, 1] * y + g[2, 2] * z)
    )


def gradient(geometry, q):
    """Return the derivatives of fields along x, y and z."""
    d, _, g, _, _, _, _, _ = geometry
    r, s, t = d[0] @ q, d[1] @ q, d[2] @ q
    x = g[0, 0] * r + g[1, 0] * s + g[2, 0] * t
    y = g[0, 1] * r + g[1, 1] * s + g[2, 1] * t
    z = g[0, 2] * r + g[1, 2] * s + g[2, 2] * t
    return x, y, z


def on_faces(geometry, q):
    """Return the values of fields on the inside and on the outside of faces."""
    _, _, _, _, _, inside, node, element = geometry
    return q[:, inside], q[:, node, element]


def lifted(geometry, flux):
    """Return the contribution of integrals over faces to the fields."""
    _, lift, _, _, scale, _, _, _ = geometry
    return lift @ (scale * flux)
