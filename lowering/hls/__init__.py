"""Streaming circuits for FPGAs by high-level synthesis (HLS): regions as networks of processes joined by
FIFOs.

`network` makes the network of a region, `kernels` and `verilog` print it, `project` writes the folder for a
vendor's tools, `simulation` runs the network, and `model` estimates its cycles and hardware.
"""
