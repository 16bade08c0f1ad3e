"""Recorded runs: schema, files, stepping. Opens without torch."""
