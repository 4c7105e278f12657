"""The one exception that carries a sentence for the person who starts the product."""


class Trouble(Exception):
    """Something outside the code stands in the way; the message is one sentence naming the remedy."""
