"""The clocks of `time` as they are before the program runs, which may replace them by its own, as tests do.

This package's calls are neither to be counted by a program's fake clock, nor to believe it.
"""

from time import monotonic, perf_counter, process_time, sleep, thread_time

__all__ = ["monotonic", "perf_counter", "process_time", "sleep", "thread_time"]
