"""LLVM's types of numbers."""

__all__ = ["BITS"]

BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64}
