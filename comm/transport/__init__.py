"""Communicators over MPI processes or threads, collective operations built on them, and failure detection."""
