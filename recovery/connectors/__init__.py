"""How Steadyhand asks an outside system what happened."""
