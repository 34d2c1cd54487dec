"""Exchanges of array blocks: the boxes that ranks send to each other, computed by formula and run.

`halo` and `redistribute` make the plan of an exchange, `exchange_plan` sends and receives, `persistent`
repeats an exchange with requests that MPI keeps.
"""
