"""CPU schedules: from statements to kernels, and the two CPU targets, LLVM and plain C."""
