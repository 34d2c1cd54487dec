"""Flows of an ideal gas: the Euler equations, and with viscosity and heat conduction Navier-Stokes.

Density, momentum, energy; Rusanov's fluxes.  Gradients by Bassi and Rebay's first method; viscous fluxes are
means of both sides with a penalty on jumps.  The gas constant is 1: temperature is pressure over density.
"""

import numpy as np

from .operators import divergence, gradient, lifted, on_faces

GAMMA = 1.4
VISCOSITY = 0.02
PRANDTL = 0.72
CONDUCTIVITY = VISCOSITY * GAMMA / (GAMMA - 1) / PRANDTL


def pressure(q):
    """Return the pressure of conserved fields."""
    return (GAMMA - 1) * (q[4] - 0.5 * (q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) / q[0])


def flux_across(q, nx, ny, nz):
    """Return the fluxes along a direction, and the speed of the fastest waves along it."""
    p = pressure(q)
    u = (nx * q[1] + ny * q[2] + nz * q[3]) / q[0]
    flux = np.stack([q[0] * u, q[1] * u + nx * p, q[2] * u + ny * p, q[3] * u + nz * p, (q[4] + p) * u])
    return flux, np.abs(u) + np.sqrt(GAMMA * p / q[0])


def rhs(q, geometry):
    """Return the time derivative of fields (5, n, K)."""
    normals = geometry[3]
    nx, ny, nz = normals[0], normals[1], normals[2]
    p = pressure(q)
    u, v, w = q[1] / q[0], q[2] / q[0], q[3] / q[0]
    h = q[4] + p
    x = np.stack([q[1], q[1] * u + p, q[2] * u, q[3] * u, h * u])
    y = np.stack([q[2], q[1] * v, q[2] * v + p, q[3] * v, h * v])
    z = np.stack([q[3], q[1] * w, q[2] * w, q[3] * w + p, h * w])
    inner, outer = on_faces(geometry, q)
    here, fast = flux_across(inner, nx, ny, nz)
    there, faster = flux_across(outer, nx, ny, nz)
    jump = 0.5 * (here - there - np.maximum(fast, faster) * (inner - outer))
    return lifted(geometry, jump) - divergence(geometry, x, y, z)


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


def conserved(rho, u, v, w, p):
    """Return the conserved fields (5, n, K) of given density, velocity and pressure."""
    rho, u, v, w, p = np.broadcast_arrays(rho, u, v, w, p)
    return np.stack([rho, rho * u, rho * v, rho * w, p / (GAMMA - 1) + 0.5 * rho * (u * u + v * v + w * w)])


def free_stream(mesh):
    """Return a gas that has the same density, velocity and pressure everywhere; its flow stays as it is."""
    return conserved(np.full_like(mesh.x[0], 1.2), 0.7, -0.3, 0.4, 0.9)


def vortex(mesh, t, strength=1.0, speed=1.0):
    """Return an isentropic vortex moving along x: an exact solution, except for truncation by the box."""
    width, depth = mesh.sizes[0], mesh.sizes[1]
    x = (mesh.x[0] - speed * t) % width - width / 2
    y = mesh.x[1] - depth / 2
    bump = strength / (2 * np.pi) * np.exp(0.5 * (1 - x * x - y * y))
    rho = (1 - (GAMMA - 1) / (2 * GAMMA) * bump * bump) ** (1 / (GAMMA - 1))
    return conserved(rho, speed - bump * y, bump * x, 0.0, rho**GAMMA)


# ---- Navier and Stokes ------------------------------------------------------------------------------
def primitive(q):
    """Return velocity and temperature of conserved fields."""
    return np.stack([q[1] / q[0], q[2] / q[0], q[3] / q[0], pressure(q) / q[0]])


def slopes(w, geometry):
    """Return the gradients of velocity and temperature, including the jumps at faces."""
    normals = geometry[3]
    inner, outer = on_faces(geometry, w)
    half = 0.5 * (outer - inner)
    x, y, z = gradient(geometry, w)
    x = x + lifted(geometry, normals[0] * half)
    y = y + lifted(geometry, normals[1] * half)
    z = z + lifted(geometry, normals[2] * half)
    return x, y, z


def viscous(w, x, y, z):
    """Return the viscous fluxes of momentum and energy along x, y and z."""
    third = 2 / 3 * (x[0] + y[1] + z[2])
    xx, yy, zz = 2 * x[0] - third, 2 * y[1] - third, 2 * z[2] - third
    xy, xz, yz = y[0] + x[1], z[0] + x[2], z[1] + y[2]
    u, v, s = w[0], w[1], w[2]
    heat = CONDUCTIVITY / VISCOSITY
    along_x = VISCOSITY * np.stack([xx, xy, xz, u * xx + v * xy + s * xz + heat * x[3]])
    along_y = VISCOSITY * np.stack([xy, yy, yz, u * xy + v * yy + s * yz + heat * y[3]])
    along_z = VISCOSITY * np.stack([xz, yz, zz, u * xz + v * yz + s * zz + heat * z[3]])
    return along_x, along_y, along_z


def viscous_rhs(q, geometry, source, penalty):
    """Return the time derivative of fields (5, n, K), with viscosity and a source."""
    normals, scale = geometry[3], geometry[4]
    nx, ny, nz = normals[0], normals[1], normals[2]
    w = primitive(q)
    gx, gy, gz = slopes(w, geometry)
    fx, fy, fz = viscous(w, gx, gy, gz)

    p = pressure(q)
    u, v, s, h = w[0], w[1], w[2], q[4] + p
    x = np.stack([q[1], q[1] * u + p - fx[0], q[2] * u - fx[1], q[3] * u - fx[2], h * u - fx[3]])
    y = np.stack([q[2], q[1] * v - fy[0], q[2] * v + p - fy[1], q[3] * v - fy[2], h * v - fy[3]])
    z = np.stack([q[3], q[1] * s - fz[0], q[2] * s - fz[1], q[3] * s + p - fz[2], h * s - fz[3]])

    inner, outer = on_faces(geometry, q)
    here, fast = flux_across(inner, nx, ny, nz)
    there, faster = flux_across(outer, nx, ny, nz)
    speed = np.maximum(fast, faster) + penalty * scale
    jump = 0.5 * (here - there - speed * (inner - outer))
    inner_x, outer_x = on_faces(geometry, fx)
    inner_y, outer_y = on_faces(geometry, fy)
    inner_z, outer_z = on_faces(geometry, fz)
    drag = 0.5 * (nx * (inner_x - outer_x) + ny * (inner_y - outer_y) + nz * (inner_z - outer_z))
    total = np.stack([jump[0], jump[1] - drag[0], jump[2] - drag[1], jump[3] - drag[2], jump[4] - drag[3]])
    return lifted(geometry, total) - divergence(geometry, x, y, z) + source


def advance_viscous(q, count, dt, geometry, a, b, source, penalty):
    """Return the fields after ``count`` time steps, with viscosity and a source."""
    d, lift, metric, normals, scale, inside, node, element = geometry
    change = np.zeros_like(q)
    for _ in range(count):
        for k in range(5):
            on = d, lift, metric, normals, scale, inside, node, element
            change = a[k] * change + dt * viscous_rhs(q, on, source, penalty)
            q = q + b[k] * change
    return q


def penalty_of(order):
    """Return the penalty factor: its product with `Mesh.scale` and the jump is subtracted from the flux."""
    return VISCOSITY * GAMMA / PRANDTL * (order + 1) * (order + 3) / 3


def manufactured(mesh):
    """Return smooth stationary fields (5, n, K), and the source for which they are an exact solution."""
    from .manufactured import fields_and_source

    (rho, u, v, w, p), source = fields_and_source(GAMMA, VISCOSITY, CONDUCTIVITY)(*mesh.x, *mesh.sizes)
    return conserved(rho, u, v, w, p), np.stack([np.broadcast_to(s, mesh.x[0].shape) for s in source])
