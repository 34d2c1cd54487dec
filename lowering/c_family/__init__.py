"""Printers of kernels as text in languages of the C family: C, OpenCL C, CUDA C, HLS C++."""
