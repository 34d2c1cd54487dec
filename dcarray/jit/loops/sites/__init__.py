"""Sites: places in a program's code where compiled code may take over, which are hot, and the runs of their plans."""
