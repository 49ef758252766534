"""askance: agents that reason over verbalized images."""

__version__ = "0.1.0"
