"""The physical plan: immutable, printable, and the only contract between optimizer and runtime."""
