"""A loom on streams: rounds, sinks, and the handle for users."""

from windloom.engine.streaming.handle import Handle as Handle
