"""The requests that the service answers: one file per kind of request."""
