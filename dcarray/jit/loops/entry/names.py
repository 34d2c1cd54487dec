"""Names of values that no name of a program has."""

START = "start of the remaining iterations"
"""The symbol at which a resumed loop begins."""
RETURNED = "what is returned"
"""What statements return."""
UNDERSCORE = "the name _"
"""What is to be bound to ``_``."""
