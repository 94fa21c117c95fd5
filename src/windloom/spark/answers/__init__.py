"""Answers that Spark makes: by shards on executors, and expressions that only Spark can evaluate."""
