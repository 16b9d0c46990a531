"""Fabula: stories that remember."""

__version__ = "0.1.0"
