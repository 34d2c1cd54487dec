"""The printer of process networks that compute with integers as SystemVerilog."""
