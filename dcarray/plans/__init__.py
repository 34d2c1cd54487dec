"""From a log to an executable plan: in this process or another one, kept on disk."""
