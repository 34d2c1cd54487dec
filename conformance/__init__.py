"""Other people's test-suites, run on wrapped arrays: each module is a command."""
