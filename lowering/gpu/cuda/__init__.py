"""CUDA: devices through CuPy, the dialect of their kernels, and graphs of launches."""
