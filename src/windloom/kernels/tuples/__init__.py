"""The compiled intake: projected tuples in, as Arrow; the cells of every set out."""
