"""Loops and runs of statements of accelerated code, compiled from their source.

`sites` puts sites into the program's code, finds which are hot, and decides each time whether a plan runs.
`syntax` finds the loops, the runs and the names that they read, `entry` describes the values of these names,
and `tracing` turns source and descriptions into a region, with `operations` on its values.
`dcarray.lowering.compilation` makes kernels of regions.
"""
