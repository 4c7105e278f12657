"""One folder per agent framework, each run in an environment of its own by a pytest of its own."""
