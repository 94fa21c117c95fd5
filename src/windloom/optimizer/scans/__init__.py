"""Scans: which sets one reading of a stream feeds, and how."""

from windloom.optimizer.scans.build import given_scans, scans_by_grouping
from windloom.optimizer.scans.search import SCANS, check_scans, form_scans

__all__ = ["SCANS", "check_scans", "form_scans", "given_scans", "scans_by_grouping"]
