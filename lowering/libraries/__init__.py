"""Library calls: which library serves which call of a region."""
