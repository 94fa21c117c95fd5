"""Joins in a plan: where sides are answered, in which order they are folded, and by which technique."""
