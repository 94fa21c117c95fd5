"""The experiments of the papers, repeated: `python -m experiments` writes data, figures and pages."""
