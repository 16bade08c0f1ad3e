"""See, measure and understand speculative decoding on a real model."""

__version__ = "0.1.0"
