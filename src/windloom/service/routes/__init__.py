"""What the service answers: one file per kind of request."""
