"""Streaming circuits: regions as networks of processes that FIFOs join, for high-level synthesis.

`network` makes the network of a region, `kernels` and `verilog` print it, `project` writes the vendor's
folder, `simulation` runs it, and `model` says what it costs.
"""
