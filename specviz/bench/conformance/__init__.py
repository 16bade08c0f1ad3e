"""Our decoder beside vLLM's: the same target, drafters, prompts and counters."""
