"""Nodal discontinuous Galerkin methods on tetrahedra: wave, Euler and Navier-Stokes equations.

`reference` has the nodes and matrices of one tetrahedron, `mesh` a box of tetrahedra and who is whose
neighbour, `wave` and `gas` the right-hand sides, `stepping` a Runge-Kutta method; all are plain NumPy.
`runs` measures errors and speed, with NumPy and with dcarray.  ``python -m examples.dgfem`` shows it.

References
----------
J. S. Hesthaven and T. Warburton, *Nodal Discontinuous Galerkin Methods*, Springer, 2008: nodes, matrices,
strong form; its sections 10.1 and 6.6.
F. Bassi and S. Rebay, Journal of Computational Physics 131, 1997: gradients for viscous terms.
"""
