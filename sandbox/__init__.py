"""A small outside world with its own ledger, which fails on request: payments, tickets, mail and CRM."""
