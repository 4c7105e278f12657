"""A manifest in words: what each tool is, how its doubts are settled, how it is taken back, what holds it back."""

from __future__ import annotations

from steadyhand.manifest import Idempotency, Manifest, Tool

from console.builders import words
from console.pages.workflows import ToolRow
from runs.redact import clean_text

PROOF = {
    "reply": "a valid reply proves it",
    "look": "only a look-up proves it",
    "look_final": "only a final look-up proves it",
}


def counted(manifest: Manifest) -> str:
    writes = sum(tool.effect == "write" for tool in manifest.tools)
    return f"{words.plural(len(manifest.tools), 'tool')}, {words.plural(writes, 'write')}"


def facts(manifest: Manifest) -> list[tuple[str, str]]:
    """What holds for the whole workflow, by label."""
    budgets, threshold = manifest.budgets, manifest.value_threshold_minor
    tokens = [
        f"{limit} {kind} tokens"
        for limit, kind in ((budgets.max_input_tokens, "input"), (budgets.max_output_tokens, "output"))
        if limit is not None
    ]
    cost = budgets.max_estimated_cost_minor_units
    spent = [*tokens, f"a cost of {cost} minor units"] if cost is not None else tokens
    return [
        ("Budgets", f"{budgets.max_turns} turns, {budgets.max_tool_calls} calls, {budgets.max_attempts_per_step} "
                    f"tries per step, {words.lasting(budgets.max_elapsed_seconds)}"),
        ("Usage", ", ".join(spent) if spent else "no ceiling of tokens or cost"),
        ("Unmeasured turns", "stop the run" if budgets.unmeasured == "stop" else "are estimated"),
        ("Deadline", words.lasting(manifest.deadline_seconds) if manifest.deadline_seconds else "none declared"),
        ("Threshold", f"above {threshold} minor units a write waits for an approval" if threshold is not None
                      else "none: no write waits because of its value"),
        ("Must be proven", _named(manifest.required_effects) or "nothing is required"),
        ("Undone in order", _named(manifest.compensation_order) or "the latest first"),
        ("Owner", f"{clean_text(manifest.owner_team, 80)}, tasks due in {words.lasting(manifest.sla_seconds)}"),
    ]  # fmt: skip


def tool_row(tool: Tool) -> ToolRow:
    return ToolRow(
        name=tool.name,
        title=clean_text(tool.title, 200),
        kind=f"{tool.effect}, version {tool.version}",
        found_out=_found_out(tool) if tool.effect == "write" else ["changes nothing"],
        undo=_undo(tool),
        limits=_limits(tool),
    )


def _found_out(tool: Tool) -> list[str]:
    return [PROOF[tool.proof], _look(tool), _key(tool.idempotency)]


def _look(tool: Tool) -> str:
    look = tool.reconcile
    if look is None:
        return "no look-up: a lost reply goes to a person"
    if look.max_in_flight_seconds is None or look.max_visibility_lag_seconds is None:
        return f"looked up at `{look.connector}`, never final: a bound is not declared"
    bound = words.lasting(look.max_in_flight_seconds + look.max_visibility_lag_seconds)
    return f"looked up at `{look.connector}`, final after {bound}, at most {look.max_looks} times"


def _key(key: Idempotency) -> str:
    if key.kind == "natural":
        return "repeating it changes nothing more"
    if key.kind == "none":
        return "no key: it is never sent twice in doubt"
    kept = key.retention_seconds
    if kept is None:
        return f"key in `{key.header or key.field}`, kept nobody says how long"
    return f"key in `{key.header or key.field}`, kept {kept if isinstance(kept, str) else words.lasting(kept)}"


def _undo(tool: Tool) -> str:
    if tool.effect == "read":
        return "nothing to undo"
    if tool.compensate is None:
        return "irreversible" if tool.irreversible else "no undo declared"
    within = tool.compensate.window_seconds
    return f"by `{tool.compensate.tool}`" + (f", for {words.lasting(within)}" if within is not None else "")


def _limits(tool: Tool) -> list[str]:
    """What stands before it leaves; a tool without any says so."""
    rate = tool.rate_limit
    found = [
        "waits for an approval" if tool.requires_approval else "",
        f"at most {tool.max_value_minor} minor units" if tool.max_value_minor is not None else "",
        f"once per {_named(tool.once_per)}" if tool.once_per else "",
        f"at most {rate.calls} in {words.lasting(rate.per_seconds)}" if rate else "",
        "sent by Steadyhand, not by the agent" if tool.dispatch == "host" else "",
        f"{words.plural(len(tool.preconditions), 'precondition')} checked again" if tool.preconditions else "",
    ]
    return [one for one in found if one] or ["none of its own"]


def _named(names: list[str]) -> str:
    return ", ".join(f"`{clean_text(name, 120)}`" for name in names)
