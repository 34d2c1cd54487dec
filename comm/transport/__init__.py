"""Moving bytes between processes: MPI, or threads of one process that stand for ranks."""
