"""CQL: continuous queries and catalogs as text, read into the values of `windloom.model`."""

from windloom.language.catalog import Catalog, CatalogQuery, CatalogStream, parse_catalog
from windloom.language.select import parse_query
from windloom.language.tuple_trees import expression_type, joined_type

__all__ = [
    "Catalog",
    "CatalogQuery",
    "CatalogStream",
    "expression_type",
    "joined_type",
    "parse_catalog",
    "parse_query",
]
