"""Passes over optimised LLVM text, for what LLVM has no instruction or would undo."""
