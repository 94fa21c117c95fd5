"""Where the step of a round runs, and where the state between rounds lives: the driver, or executors by shards."""
