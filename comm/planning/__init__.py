"""Planning: from a region (a batch of recorded statements) over distributed arrays to each rank's program.

`placement` decides which ranks compute each statement and inserts communication, `passes` remove or merge
communication, `localise` makes the steps of one rank, `overlap` sends messages during computations, and
`rank_program` holds and runs the steps.  `performance_model` and `counting` predict their run time.
"""
