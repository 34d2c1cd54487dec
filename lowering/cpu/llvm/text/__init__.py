"""Writing LLVM text: a builder of instructions, and literals."""
