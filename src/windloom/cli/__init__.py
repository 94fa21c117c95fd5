"""The `windloom` command: thin, over the engine."""
