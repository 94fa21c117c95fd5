"""The pure step of a round, its schedules, and what it counts."""
