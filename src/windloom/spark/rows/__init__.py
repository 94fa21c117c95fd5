"""The Spark job of row queries: it joins the tuples of strands, and puts the rows into windows."""
