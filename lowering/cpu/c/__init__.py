"""The plain C target: it prints readable kernels, and its results are compared with the LLVM target's."""
