"""From process networks to kernels in C++ for Vitis HLS and OpenCL for Intel's FPGA SDK.

`vitis` and `intel` print whole kernels.  What both have in common is in `printer`.  It takes the text of a
statement with its line buffers, as of a stencil, from `statements`, of products from `systolic`, of loads and
stores from `movers`.
"""
