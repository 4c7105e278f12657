"""The response headers that Django and django-csp leave to us (SEC-13)."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

UNUSED_FEATURES = (
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
    "magnetometer=(), microphone=(), midi=(), payment=(), usb=()"
)


class Headers:
    """Outermost but one, so that static files and refusals carry them too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Permissions-Policy"] = UNUSED_FEATURES
        if not request.path.startswith(settings.STATIC_URL):
            # Whatever a page says belongs to one person at one moment; ETag polling still works under no-store.
            response.headers.setdefault("Cache-Control", "no-store")
        return response
