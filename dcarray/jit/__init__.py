"""``dcarray.accelerate``: NumPy calls of functions and modules go to dcarray, loops are compiled from
source."""
