"""Names of values in compiled code that no program uses."""

START = "start of the remaining iterations"
"""The symbol at which a resumed loop begins."""
RETURNED = "what is returned"
"""What statements return."""
ENDED = "how the loop has ended"
"""Which ``return`` of a loop is due."""
