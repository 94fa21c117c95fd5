"""The interface of sinks, for sinks that import it from here: the place that was documented up to version 0.2."""

from windloom.sinks.sink import NamedSink, Sink, SinkPlace, TableInfo

__all__ = ["NamedSink", "Sink", "SinkPlace", "TableInfo"]
