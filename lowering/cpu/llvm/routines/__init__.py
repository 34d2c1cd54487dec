"""Routines: LLVM text that is written by hand, for what kernels cannot express."""
