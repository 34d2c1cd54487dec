"""An analytic model that estimates the cycles, memory traffic and hardware of process networks."""
