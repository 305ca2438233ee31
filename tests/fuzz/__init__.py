"""Fuzzing: what any bytes may do to rumi, and what they may not."""
