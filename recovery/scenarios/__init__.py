"""Incidents as files: what happened, and the right answer; played through the real code and compared."""
