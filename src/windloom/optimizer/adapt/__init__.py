"""Plans that follow the data: what can be switched between rounds, charts of the best plans, when a switch pays."""
