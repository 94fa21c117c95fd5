"""The life of windows in rounds: what a round reports, keeps and counts as late; one file per kind."""
