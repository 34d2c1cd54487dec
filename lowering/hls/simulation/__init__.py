"""Simulation of process networks: cycle by cycle in Python, and of their kernels as compiled C++ programs."""
