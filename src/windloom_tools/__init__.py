"""Tools around Windloom that no query needs: `windloom calibrate`, `demo` and `warm`, the oracle of `windloom.testing`.

The package is part of the same wheel and imports what it needs of `windloom`. Of `windloom`, only `windloom.testing`
imports it; the command line loads its commands by the names of their modules (`windloom.cli.main`).
"""
