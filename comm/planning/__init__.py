"""From a region over distributed arrays to one process's program: placement, communication, and its
removal."""
