"""FPGAs: functions as projects for the tools of vendors, and regions as streaming circuits, shown.

Only names of its modules, in tables of names, lead here from the rest of the package.
"""
