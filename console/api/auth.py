"""The bearer token, read from the header and nowhere else: a session opens nothing here (SEC-10)."""

from __future__ import annotations

from django.http import HttpRequest
from ninja.security import HttpBearer

from recovery.intake import Credentials, NotAuthenticated, parse_token


class AgentToken(HttpBearer):
    """Takes the token apart; whether it holds is proven by the statement that uses it, at no extra round trip."""

    def __call__(self, request: HttpRequest) -> Credentials:
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != self.openapi_scheme:
            raise NotAuthenticated
        return self.authenticate(request, token)

    def authenticate(self, request: HttpRequest, token: str) -> Credentials:
        """Credentials that are well formed and not yet proven. Raises NotAuthenticated."""
        return parse_token(token)
