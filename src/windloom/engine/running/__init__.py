"""Runs rounds, of streams and of batch runs alike: the loop, and the placements, where step and state are."""
