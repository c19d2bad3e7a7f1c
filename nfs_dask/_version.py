"""The version of this package, in one place for the code and for the build."""

__version__ = "0.1.0"
