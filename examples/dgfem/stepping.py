"""A Runge-Kutta method: five stages, order four, one additional array (Carpenter and Kennedy, 1994).

An equation's ``advance`` does ``change = A[k] * change + dt * rhs(q)``, ``q = q + B[k] * change`` for each.
"""

import numpy as np

A = np.array(
    [
        0.0,
        -567301805773 / 1357537059087,
        -2404267990393 / 2016746695238,
        -3550918686646 / 2091501179385,
        -1275806237668 / 842570457699,
    ]
)
B = np.array(
    [
        1432997174477 / 9575080441755,
        5161836677717 / 13612068292357,
        1720146321549 / 2090206949498,
        3134564353537 / 4481467310338,
        2277821191437 / 14882151754819,
    ]
)


def steps(time, dt):
    """Return the number of equal steps of at most dt that cover a time, and their length."""
    count = max(1, int(-(-time // dt)))
    return count, time / count
