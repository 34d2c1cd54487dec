"""Loops of accelerated functions, compiled from their source instead of recorded call by call.

`rewrite` puts a loop site before each loop, which decides at each entry whether compiled code runs it
(`loop_sites`); `trace` turns the loop's source and the entry values of its names (`entry_values`) into a
region, which is planned as a recording's region is; `run_loop` runs the plan.
"""
