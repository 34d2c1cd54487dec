"""The CPU target "cpu": kernels become LLVM IR, which llvmlite compiles."""
