"""Show and run: ``explain``, ``info`` and ``python -m dcarray run``."""
