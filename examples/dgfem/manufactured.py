"""A manufactured solution of the Navier-Stokes equations: chosen fields, and the source that they need.

The equations are written down once more, symbolically, and differentiated by SymPy.
"""

from functools import cache

import sympy


@cache
def fields_and_source(gamma, viscosity, conductivity):
    """Return a function of x, y, z and the box's sizes for density, velocity, pressure and five sources."""
    x, y, z, a, b, c = sympy.symbols("x y z a b c")
    r, s, t = (2 * sympy.pi * position / size for position, size in ((x, a), (y, b), (z, c)))
    rho = 1 + sympy.sin(r + s) * sympy.cos(t) / 10
    u = sympy.Rational(1, 2) + sympy.sin(s + t) / 10
    v = sympy.Rational(3, 10) + sympy.cos(r) * sympy.sin(t) / 10
    w = sympy.sin(r + s) / 10
    p = 1 + sympy.cos(s) * sympy.cos(r + t) / 10

    at, velocity = (x, y, z), (u, v, w)
    energy = p / (gamma - 1) + rho * (u * u + v * v + w * w) / 2
    spread = sum(sympy.diff(f, d) for f, d in zip(velocity, at, strict=True))
    temperature = p / rho

    def stress(i, j):
        shear = sympy.diff(velocity[i], at[j]) + sympy.diff(velocity[j], at[i])
        return viscosity * (shear - (sympy.Rational(2, 3) * spread if i == j else 0))

    source = [sum(sympy.diff(rho * velocity[i], at[i]) for i in range(3))]
    for j in range(3):
        flux = [rho * velocity[i] * velocity[j] + (p if i == j else 0) - stress(i, j) for i in range(3)]
        source.append(sum(sympy.diff(flux[i], at[i]) for i in range(3)))
    work = [
        (energy + p) * velocity[i]
        - sum(velocity[j] * stress(i, j) for j in range(3))
        - conductivity * sympy.diff(temperature, at[i])
        for i in range(3)
    ]
    source.append(sum(sympy.diff(work[i], at[i]) for i in range(3)))
    return sympy.lambdify((x, y, z, a, b, c), [(rho, u, v, w, p), tuple(source)], "numpy", cse=True)
