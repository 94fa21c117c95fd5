"""Running rounds, of streams and of batch runs alike: the loop, and where the step runs and the state lives."""
