"""The durable half of a stream: its checkpoint, and recovery from it."""

from windloom.rounds.checkpoint.checkpoint import Checkpoint
from windloom.rounds.checkpoint.logs import RoundLog
from windloom.rounds.checkpoint.records import PlanRecord
from windloom.rounds.checkpoint.recovery import Recovered, recover
from windloom.rounds.checkpoint.storage import LocalStorage, Storage

__all__ = ["Checkpoint", "LocalStorage", "PlanRecord", "Recovered", "RoundLog", "Storage", "recover"]
