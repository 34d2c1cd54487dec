"""The emitter: LLVM text from kernels."""
