"""The loop nest of a statement: its accesses, loop order, body and legality, independent of targets."""
