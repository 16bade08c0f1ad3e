"""Published layouts of head checkpoints: one module per layout, reading and writing."""
