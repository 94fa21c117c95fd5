"""A round, shard by shard: each shard has the state of its own groups, in files that any task can read."""
