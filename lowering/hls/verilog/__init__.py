"""From process networks of integers to SystemVerilog."""
