"""From process networks to kernels in C++ for Vitis HLS and OpenCL for Intel's FPGA SDK."""
