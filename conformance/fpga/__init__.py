"""Checks of generated streaming circuits with external tools: FPGA emulator, simulator, synthesis."""
