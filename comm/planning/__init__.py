"""Planning: from a region over distributed arrays to the program of each rank.

`placement` decides which ranks compute each statement and inserts communication, `passes` remove or merge
communication, `localise` makes the steps of one rank, `overlap` lets messages travel during work, and
`rank_program` holds and runs the steps.  `performance_model` and `counting` predict their time.
"""
