"""The thread pool, as LLVM text, and the launches of kernels on it."""
