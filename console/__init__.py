"""The edge: settings, pages for people, the API for agents, and the processes that serve them."""
