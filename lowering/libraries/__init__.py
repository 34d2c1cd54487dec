"""Library calls: the choice of the library that runs a call of a region."""
