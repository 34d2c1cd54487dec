"""Schedules: templates that turn statements into kernels, and the scheduler that chooses one."""
