"""CUDA: devices, through CuPy."""
