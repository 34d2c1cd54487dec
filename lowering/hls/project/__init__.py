"""The project folders for FPGA vendors' tools: kernel, host program, build files, test bench and data."""
