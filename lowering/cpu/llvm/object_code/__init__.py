"""Compilation of LLVM text to functions in this process: llvmlite, its optimiser, and an ELF linker."""
