"""The durable half of a stream: logs, snapshots, tuple files, and recovery from them."""
