"""A running loom over HTTP."""
