"""The SDK against a server that is played by the test; no database, no network."""
