"""Schedules for devices: from loop nests to blocks of threads."""
