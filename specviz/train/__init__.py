"""Training of heads: data from the target itself, its features, losses, one loop for all."""
