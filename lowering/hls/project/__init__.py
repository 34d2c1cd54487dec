"""Folders for the vendors' tools: kernel, host program, build files, test bench and data."""
