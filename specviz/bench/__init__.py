"""Prompts, one run from request to trace, and the speed report."""
