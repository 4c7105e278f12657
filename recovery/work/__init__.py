"""The work that decisions order: short, and boring where it touches the world."""
