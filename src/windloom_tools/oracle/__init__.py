"""Answers by definition, tuple by tuple in plain Python and slowly: what tests compare Windloom's answers with.

Users import it as `windloom.testing`. It reads the values of `windloom.model` and nothing that it is meant to test.
"""
