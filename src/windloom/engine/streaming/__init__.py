"""A loom on streams that go on: rounds, sinks, and the handle users hold."""

from windloom.engine.streaming.handle import Handle as Handle
