"""Where answers go, round by round; every sink may be given the same round again, with the same rows."""
