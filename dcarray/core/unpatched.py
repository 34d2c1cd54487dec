"""Functions of the standard library as they are before the program runs, which may replace them, as tests do.

This package's calls are neither to be counted by a program's fake clock, nor to believe it.
"""

from time import monotonic, perf_counter, process_time, sleep, thread_time

__all__ = ["monotonic", "open_file", "perf_counter", "process_time", "sleep", "thread_time"]

open_file = open
