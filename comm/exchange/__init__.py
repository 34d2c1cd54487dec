"""Exchanges of blocks of arrays: which boxes ranks send to each other, by formula, and how they are sent.

`halo` and `redistribute` make the plan of an exchange, `exchange_plan` runs it, and `persistent` repeats an
exchange with MPI's persistent requests.
"""
