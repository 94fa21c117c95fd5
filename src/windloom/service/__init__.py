"""A running loom over HTTP: an API for programs, a page for people, metrics for monitoring."""
