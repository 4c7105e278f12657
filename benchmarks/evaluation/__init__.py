"""Six ways of retrying a write against a provider that fails, scored from the provider's own ledger."""
