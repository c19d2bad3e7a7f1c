"""Tests, in folders that mirror the package; what they share is in helpers."""
