"""The pure functions of the Spark operator: weaving into buckets, the step of a bucket, and its segments of state."""
