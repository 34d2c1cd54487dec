"""Loops of accelerated functions, compiled from their source instead of recorded call by call.

`sites` puts a loop site before each loop, which decides at each entry whether a plan runs it.  `syntax` finds
the loops and the names that they read, `entry` describes the values of these names, and `tracing` turns
source and descriptions into a region, with `operations` on its values.
"""
