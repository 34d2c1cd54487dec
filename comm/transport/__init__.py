"""Communicators over MPI processes or threads, collective helpers on top of them, and failure detection."""
