"""The CPU target: LLVM IR through llvmlite."""
