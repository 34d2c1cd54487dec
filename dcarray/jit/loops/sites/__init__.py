"""Sites: places in a program's code where compiled code may take over, and what runs there."""
