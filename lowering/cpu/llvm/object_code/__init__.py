"""From LLVM text to functions of this process: llvmlite, its optimiser, and an ELF linker."""
