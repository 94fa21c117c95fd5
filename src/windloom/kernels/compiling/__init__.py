"""How kernels are compiled, kept, loaded and counted."""
