"""A real agent that works billing cases against the sandbox, so that there is something to look at."""
