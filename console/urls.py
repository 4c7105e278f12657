"""The table of contents of the edge."""

from django.urls import URLPattern, URLResolver, path

from console.api import api, ops

# The agents' addresses stand first: they are looked up on every tool call.
urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", api.urls),
    path("healthz", ops.healthz, name="healthz"),
    path("readyz", ops.readyz, name="readyz"),
]
