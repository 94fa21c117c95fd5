"""Intake: how the tuples of a stream become cells, natively or woven, and what that is predicted to cost."""

from windloom.optimizer.intake.choose import INTAKES, choose_scans, intake_obstacle, intakes_of

__all__ = ["INTAKES", "choose_scans", "intake_obstacle", "intakes_of"]
