"""From one statement to its loop nest: accesses, loop order, body, legality.  No target's choices yet."""
