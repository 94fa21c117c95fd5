"""The compiled intake: projected tuples in, as Arrow; the cells of all sets out, however different the sets are.

No kernel depends on the catalog: nothing is compiled when a query is added.
"""
