"""Streaming circuits in the tools of others: emulators and open tools for hardware."""
