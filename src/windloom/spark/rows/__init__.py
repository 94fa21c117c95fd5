"""The Spark job of row queries."""
