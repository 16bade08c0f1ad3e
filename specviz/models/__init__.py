"""Targets: models whose output must be preserved, behind one protocol."""
