"""Facts about regions, derived on demand: effects, independence, ranges of values, traffic."""
