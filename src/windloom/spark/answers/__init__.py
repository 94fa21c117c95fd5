"""Answers that Spark makes: shards on executors, expressions that only Spark knows."""
