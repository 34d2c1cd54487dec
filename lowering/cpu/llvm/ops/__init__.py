"""The operations of ``ir.ops`` on scalars as LLVM instructions, one module for each kind of dtype."""
