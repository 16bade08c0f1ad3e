"""Events in, strings and charts out: the same input always gives the same output."""
