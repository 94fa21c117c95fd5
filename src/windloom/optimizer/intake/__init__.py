"""How the tuples of a stream become cells: natively in Spark, or woven by our kernels."""
