"""Programs, the lowered form of regions: their nodes, memory, driver, and form on disk."""
