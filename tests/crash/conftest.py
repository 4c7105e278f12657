"""The running product of the stories, for tests that kill parts of it."""

from tests.stories.conftest import agent, stack

__all__ = ["agent", "stack"]
