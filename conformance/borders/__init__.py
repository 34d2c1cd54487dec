"""Scripts that hand arrays to other libraries, to other processes, and to names that others look up."""
