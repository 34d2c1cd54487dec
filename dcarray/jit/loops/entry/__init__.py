"""The values at a loop's entry: their guards, and their descriptions for the planner."""
