"""OpenCL: devices, the dialect of its kernels, and the target that compiles them."""
