"""The figures and tables of the papers behind the methods, computed anew: ``python -m benchmarks.papers --list``."""
