"""Spark on this machine: rows as it reads them without parsing, its choice of words, and its counts.

Rows are Parquet files of a label and of a sparse vector, in the form in which Spark keeps vectors itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

MEMORY = "6g"  # of the heap of Java
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # pointers of rows, columns, values, class codes


def write(path: Path, parts: Iterable[Part], features: int) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = [("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32()))]
    vector = pa.struct([*values, ("values", pa.list_(pa.float64()))])
    schema = pa.schema([("label", pa.float64()), ("features", vector)])
    beside = path.with_suffix(".part")
    with pq.ParquetWriter(beside, schema) as writer:
        for indptr, indices, data, codes in parts:
            edges = pa.array(indptr.astype(np.int32))
            columns = [
                pa.array(np.zeros(len(codes), np.int8)),  # a sparse one
                pa.array(np.full(len(codes), features, np.int32)),
                pa.ListArray.from_arrays(edges, pa.array(indices.astype(np.int32))),
                pa.ListArray.from_arrays(edges, pa.array(data.astype(np.float64))),
            ]
            vectors = pa.StructArray.from_arrays(columns, fields=list(vector))
            writer.write_table(pa.table([pa.array(codes.astype(np.float64)), vectors], schema=schema))
    return beside.rename(path)


def read(path: Path) -> Any:
    """Rows as a table of Spark; what it needs is started when this is called for the first time."""
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DoubleType, StructField, StructType

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", MEMORY)
        .config("spark.driver.maxResultSize", "0")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    schema = StructType([StructField("label", DoubleType()), StructField("features", VectorUDT())])
    return session.read.schema(schema).parquet(str(path))


def by_chi2(rows: Any, k: int) -> np.ndarray:
    """Its test takes each count for a category of its own, and ranks by p-values, of which many are 0."""
    from pyspark.ml.feature import UnivariateFeatureSelector

    selector = UnivariateFeatureSelector(selectionMode="numTopFeatures").setSelectionThreshold(k)
    model = selector.setFeatureType("categorical").setLabelType("categorical").fit(rows)
    return np.sort(np.array(model.selectedFeatures, np.int64))


def smoothed_shares(rows: Any) -> np.ndarray:
    """Of each class the shares of all features in its counts, (classes, features), when 1 is added to each count."""
    from pyspark.ml.classification import NaiveBayes

    return np.exp(NaiveBayes(modelType="multinomial", smoothing=1.0).fit(rows).theta.toArray())
