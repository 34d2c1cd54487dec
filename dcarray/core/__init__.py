"""What everything else stands on: options, counters, memory and its windows, floating-point state,
processes."""
