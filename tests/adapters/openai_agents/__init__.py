"""The adapter against the real openai-agents package and a scripted model."""
