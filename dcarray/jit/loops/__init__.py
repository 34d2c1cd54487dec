"""Loops of NumPy code compiled from their source: what the recorder would see call by call, seen at once.

`sites` finds the loops of an accelerated function and decides, each time one is entered, whether compiled
code serves it; `trace` turns the source of a loop, and what is known of the names in it (`known`), into a
region; the rest of the way is that of a recording.
"""
