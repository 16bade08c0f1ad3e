"""What a round costs, from shapes alone."""
