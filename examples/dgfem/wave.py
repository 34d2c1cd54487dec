"""The wave equation as a system: pressure and velocity, speed of sound 1, upwind fluxes."""

import numpy as np

from .operators import divergence, gradient, lifted, on_faces


def rhs(q, geometry):
    """Return the time derivative of pressure and velocity: fields (4, n, K)."""
    normals = geometry[3]
    nx, ny, nz = normals[0], normals[1], normals[2]
    x, y, z = gradient(geometry, q[0])
    inside = np.stack([divergence(geometry, q[1], q[2], q[3]), x, y, z])
    inner, outer = on_faces(geometry, q)
    jump = inner - outer
    upwind = 0.5 * (jump[0] - nx * jump[1] - ny * jump[2] - nz * jump[3])
    flux = np.stack([-upwind, nx * upwind, ny * upwind, nz * upwind])
    return lifted(geometry, flux) - inside


def advance(q, count, dt, geometry, a, b):
    """Return the fields after ``count`` time steps."""
    d, lift, metric, normals, scale, inside, node, element = geometry
    change = np.zeros_like(q)
    for _ in range(count):
        for k in range(5):
            on = d, lift, metric, normals, scale, inside, node, element
            change = a[k] * change + dt * rhs(q, on)
            q = q + b[k] * change
    return q


def plane_wave(mesh, t):
    """Return an exact plane wave along the box's diagonal: fields (4, n, K)."""
    k = 2 * np.pi / np.array(mesh.sizes)
    frequency = np.sqrt((k * k).sum())
    p = np.sin(np.einsum("d,dnk->nk", k, mesh.x) - frequency * t)
    return np.stack([p, *(one / frequency * p for one in k)])
