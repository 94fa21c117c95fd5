"""From tuples, or partials that Spark made, to the cells of every set."""
