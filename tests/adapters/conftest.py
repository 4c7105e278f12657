"""Keeps the adapters' tests out of the server's environment, where their frameworks are not installed."""

collect_ignore_glob = ["*"]
