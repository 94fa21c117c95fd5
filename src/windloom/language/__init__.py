"""CQL: continuous queries and catalogs as text, read into the values of `windloom.model`."""
