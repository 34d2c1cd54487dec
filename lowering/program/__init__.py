"""From a region to a program that runs: steps, memory, driver, and its form on disk."""
