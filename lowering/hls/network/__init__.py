"""From regions to process networks."""
