"""Mathematical functions as LLVM text: vector libraries, and functions with NumPy's bits."""
