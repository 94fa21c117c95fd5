"""Tools that measure Windloom and show it at work, and that no query needs: `windloom calibrate` and `windloom demo`.

The package is part of the same wheel and imports what it needs of `windloom`. Nothing in `windloom` imports it: the
command line loads its commands by the names of their modules (`windloom.cli.main`).
"""
