"""Run eagerly or record: the one place where that is decided, by call sites and costs."""
