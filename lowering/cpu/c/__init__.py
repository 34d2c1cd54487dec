"""The plain C target: the readable listing, and a check on the LLVM emitter."""
