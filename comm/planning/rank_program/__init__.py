"""The program of one rank: its steps, their execution and description, and the check against other ranks."""
