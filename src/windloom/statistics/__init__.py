"""What rounds observed, and what plans may expect from it."""
