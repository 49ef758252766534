"""Tests against real servers, real weights and real photographs; each brings its own environment."""
