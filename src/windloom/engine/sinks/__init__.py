"""The place under which sinks of other packages know the interface of sinks."""
