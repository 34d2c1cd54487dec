"""An analytic model of process networks: cycles, memory traffic, hardware."""
