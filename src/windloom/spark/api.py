"""Spark's own types, for the folders that do not import pyspark themselves."""

from pyspark.sql import DataFrame as DataFrame
from pyspark.sql import SparkSession as SparkSession
from pyspark.sql.streaming.query import StreamingQuery as StreamingQuery
from pyspark.sql.types import StructType as StructType
