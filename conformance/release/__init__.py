"""Other versions of Python, and what is published: the commands behind make test-python and make wheels."""
