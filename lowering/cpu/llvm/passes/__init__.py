"""Passes over LLVM text after LLVM's optimiser, for rewrites that the optimiser cannot do or would undo."""
