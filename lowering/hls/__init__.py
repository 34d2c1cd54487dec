"""Streaming circuits: regions as networks of processes that FIFOs join, for high-level synthesis."""
