"""Spark's way from Parquet to counts on disk, and to a model; run it by a Python that has pyspark and Java.

    python benchmarks/spark_texts.py --data DIR/tweets --out DIR/spark [--model] [--memory 8g]

RegexTokenizer, NGram of 2, CountVectorizer fitted and applied (its vocabulary is an array in the driver), written as
Parquet; with --model a NaiveBayes over all terms. Peak memory is that of the Java process.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path


def peak_nbytes() -> int:
    """Most memory of the Java processes that this one started."""
    peaks = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except (OSError, ValueError):
            continue
        if lines["Name"].strip() == "java" and "VmHWM" in lines:
            peaks.append(int(lines["VmHWM"].split()[0]) * 1024)
    return max(peaks)


def main() -> None:
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import CountVectorizer, NGram, RegexTokenizer
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import concat

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--files", type=int, help="Read so many files only.")
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--terms", type=int, default=1 << 24)
    parser.add_argument("--model", action="store_true")
    options = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", options.memory)
        .config("spark.driver.maxResultSize", "0")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    paths = sorted(str(path) for path in Path(options.data).glob("*.parquet"))[: options.files]
    spark.read.parquet(paths[0]).count()  # started and warm before the clock runs
    start = time.perf_counter()
    texts = spark.read.parquet(*paths)
    words = RegexTokenizer(inputCol="text", outputCol="words", pattern=r"(?U)\b\w\w+\b", gaps=False).transform(texts)
    pairs = NGram(n=2, inputCol="words", outputCol="pairs").transform(words)
    terms = pairs.withColumn("terms", concat("words", "pairs"))
    vectorizer = CountVectorizer(inputCol="terms", outputCol="features", vocabSize=options.terms).fit(terms)
    counts = vectorizer.transform(terms).select("features", "label")
    counts.write.mode("overwrite").parquet(options.out)
    seconds = time.perf_counter() - start
    print(f"{len(paths)} files, {len(vectorizer.vocabulary):,} terms: {seconds:.1f} s, peak {peak_nbytes() >> 20} MiB")
    if options.model:
        stored = spark.read.parquet(options.out)
        NaiveBayes(labelCol="label").fit(stored)
        seconds = time.perf_counter() - start
        print(f"with a naive Bayes over all terms: {seconds:.1f} s, peak {peak_nbytes() >> 20} MiB")
    spark.stop()


if __name__ == "__main__":
    main()
