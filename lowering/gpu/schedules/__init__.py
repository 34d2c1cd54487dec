"""Schedules for devices, which distribute the iterations of loop nests over blocks of threads."""
