"""The commands of ``make test-python`` (other versions of Python) and ``make wheels`` (distributions)."""
