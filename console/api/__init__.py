"""The JSON edge for agents. `api` carries every operation; the list of addresses mounts `api.urls`."""

from __future__ import annotations

from ninja import NinjaAPI

from console.api import agents, callbacks, ingest, ops, problems
from console.api.auth import AgentToken
from console.api.reference import Reference

api = NinjaAPI(
    title="Steadyhand agent API",
    version="1",
    description="Propose before every call, report after it. Every refusal is application/problem+json.",
    urls_namespace="agent-api",
    auth=AgentToken(),
    docs=Reference(),
)
api.add_router("", agents.router)
api.add_router("", callbacks.router)
api.add_router("", ingest.router)
api.add_router("", ops.router)
problems.install(api)
