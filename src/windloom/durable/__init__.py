"""The durable half of a stream: its checkpoint, and recovery from it."""

from windloom.durable.checkpoint import Checkpoint
from windloom.durable.logs import RoundLog
from windloom.durable.records import PlanRecord
from windloom.durable.recovery import Recovered, recover
from windloom.durable.storage import LocalStorage, Storage

__all__ = ["Checkpoint", "LocalStorage", "PlanRecord", "Recovered", "RoundLog", "Storage", "recover"]
