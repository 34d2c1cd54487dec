"""Loop sites: where a loop begins, the choice between Python and a plan, and the run of the plan."""
