"""Which changes of a manifest take some safety away, and what each means in one sentence (DECISIONS 5).

Pure. A rule knows one field, its old value and its new one. A change without a rule may still be a wrong one: what is
said here is only what follows from the meaning of the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Place = tuple[str, ...]
Loses = Callable[[Any, Any], bool]
"""Whether something is lost between the old value and the new one."""
Rule = tuple[Loses, str]


def sentence(of: str, path: Place, old: Any, new: Any) -> str:
    """What becomes less safe where `path` of a workflow, tool or connector changed; empty where nothing does."""
    rules = [*_RULES[of].get(path, ()), *_RULES[of].get((*path[:-1], "*"), ())]
    return next((words for loses, words in rules if loses(old, new)), "")


def _gone(old: Any, new: Any) -> bool:
    return bool(old) and not new


def _came(old: Any, new: Any) -> bool:
    return not old and bool(new)


def _becomes(value: Any) -> Loses:
    return lambda old, new: bool(old != value and new == value)


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _less(old: Any, new: Any) -> bool:
    was, now = _number(old), _number(new)
    return was is not None and now is not None and now < was


def _more(old: Any, new: Any) -> bool:
    return _less(new, old)


def _dropped(old: Any, new: Any) -> bool:
    return _number(old) is not None and new is None


def _looser(old: Any, new: Any) -> bool:
    """A ceiling that was raised or taken away."""
    return _more(old, new) or _dropped(old, new)


def _shorter(old: Any, new: Any) -> bool:
    """A time that is kept; "unlimited" is longer than any number, and none declared is no time at all."""
    return (old == "unlimited" and new != "unlimited") or _less(old, new) or _dropped(old, new)


def _fewer(old: Any, new: Any) -> bool:
    """A list that lacks something it had."""
    return any(one not in (new or []) for one in old or [])


def _further(old: Any, new: Any) -> bool:
    """A list with something that it had not."""
    return _fewer(new, old)


def _wider(old: Any, new: Any) -> bool:
    """What stands for one piece of business: nothing, or more than before, so that more calls are different ones."""
    return bool(old) and (not new or (_further(old, new) and not _fewer(old, new)))


def _lower_proof(old: Any, new: Any) -> bool:
    ranks = ("reply", "look", "look_final")
    return old in ranks and new in ranks and ranks.index(new) < ranks.index(old)


def _waits_less(old: Any, new: Any) -> bool:
    """Without a list a write waits for every earlier one, with an empty one for none."""
    return new is not None and (old is None or _fewer(old, new))


def _more_statuses(old: Any, new: Any) -> bool:
    """None declared means those that say so themselves."""
    return any(not 200 <= one < 300 if old is None else one not in old for one in new or []) or bool(old and not new)


def _unencrypted(old: Any, new: Any) -> bool:
    return str(old).startswith("https:") and str(new).startswith("http:")


def _elsewhere(old: Any, new: Any) -> bool:
    return bool(old and new) and _host(old) != _host(new)


def _host(address: Any) -> str:
    return str(address).partition("://")[2].partition("/")[0].lower()


def _unseen_write(old: Any, new: Any) -> bool:
    return old is None and new["effect"] == "write" and not new["reconcile"]


_MORE_SUCCESS = "More answers count as a success."
_FINAL_SOONER = (
    "A look-up that finds nothing counts as final sooner: if this bound is not kept, a call is made twice."
)
_NEVER_FINAL = "No look-up is final any more: what is not found stays unknown until a person settles it."
_NOT_OURS = "A record that differs here counts as ours from now on."
_MORE_USED = "A run may use more before it is stopped."
_MORE_OFTEN = "It may be called more often."

_BOUND: tuple[Rule, ...] = ((_less, _FINAL_SOONER), (_dropped, _NEVER_FINAL))

_TOOL: Mapping[Place, tuple[Rule, ...]] = {
    (): ((_unseen_write, "A new write that nobody can look up: a lost reply goes to a person."),),
    ("effect",): ((_becomes("read"), "It counts as a read: nobody finds out what became of a lost reply."),),
    ("proof",): ((_lower_proof, "Less proof is asked for before a call counts as done."),),
    ("idempotency", "kind"): (
        (_becomes("none"), "A lost reply can no longer be made good by sending again under the same key."),
    ),
    ("idempotency", "retention_seconds"): (
        (_shorter, "The key protects a second send for less time, or not at all."),
    ),
    ("idempotency", "compares_arguments"): (
        (_gone, "The provider takes the same key with other arguments: it protects nothing."),
    ),
    ("reconcile",): ((_gone, "Nobody can look up what happened: a lost reply goes to a person."),),
    ("reconcile", "max_in_flight_seconds"): _BOUND,
    ("reconcile", "max_visibility_lag_seconds"): _BOUND,
    ("reconcile", "counts"): ((_gone, "An effect that was made twice is no longer noticed by counting."),),
    ("reconcile", "look", "complete"): ((_gone, "A list that goes on may be taken for a whole one."),),
    ("reconcile", "look", "ours", "*"): ((_gone, _NOT_OURS),),
    ("reconcile", "look", "match", "*"): ((_gone, _NOT_OURS),),
    ("reconcile", "match", "*"): ((_gone, _NOT_OURS),),
    ("compensate",): ((_gone, "It can no longer be undone from here."),),
    ("compensate", "window_seconds"): (
        (lambda old, new: _less(old, new) or (old is None and new is not None), "It can be undone for less time."),
    ),
    ("irreversible",): ((_came, "It cannot be taken back any more."),),
    ("requires_approval",): ((_gone, "It leaves without anybody's approval, unless its value asks for one."),),
    ("max_value_minor",): ((_looser, "One call may move more."),),
    ("value_field",): ((_gone, "Its amount is not known any more: no threshold and no ceiling holds for it."),),
    ("once_per",): ((_wider, "The same piece of business may be done more than once."),),
    ("dispatch",): ((_becomes("agent"), "The agent holds the credential, and sends the call itself."),),
    ("not_executed_statuses",): ((_further, "More answers are taken as proof that nothing was done."),),
    ("success_requires",): ((_fewer, _MORE_SUCCESS),),
    ("success_statuses",): ((_more_statuses, _MORE_SUCCESS),),
    ("error_when",): ((_fewer, _MORE_SUCCESS),),
    ("output_schema",): ((_gone, "Any answer counts as a valid result."),),
    ("identity_fields",): ((_fewer, "A success has to say less about what it made."),),
    ("sensitive_fields",): ((_fewer, "A value that was hidden is stored and shown from now on."),),
    ("rate_limit",): ((_gone, _MORE_OFTEN),),
    ("rate_limit", "calls"): ((_more, _MORE_OFTEN),),
    ("rate_limit", "per_seconds"): ((_less, _MORE_OFTEN),),
    ("preconditions",): ((_fewer, "Less is checked again after the call was held back."),),
    ("after",): ((_waits_less, "It waits for fewer of the writes before it."),),
    ("absent_is_success",): ((_came, "A target that is gone counts as work that was done."),),
    ("completes_by",): ((_becomes("reply"), "A reply alone counts as the end of the work."),),
    ("fallback",): ((_came, "The answer of another read may stand in for this one."),),
}

_WORKFLOW: Mapping[Place, tuple[Rule, ...]] = {
    ("value_threshold_minor",): (
        (_looser, "Larger writes leave without an approval, and page nobody when they are unknown."),
    ),
    ("required_effects",): ((_fewer, "A run may end well without this effect."),),
    ("deadline_seconds",): ((_looser, "A run may take longer before a person is asked."),),
    ("sla_seconds",): ((_more, "A task may wait longer for a person."),),
    ("budgets", "unmeasured"): (
        (_becomes("estimate"), "A turn that does not say what it used no longer stops the run."),
    ),
    **{
        ("budgets", name): ((_looser, _MORE_USED),)
        for name in (
            "max_turns", "max_tool_calls", "max_attempts_per_step", "max_elapsed_seconds", "max_input_tokens",
            "max_output_tokens", "max_estimated_cost_minor_units", "max_same_answers",
        )
    },
}  # fmt: skip

_CONNECTOR: Mapping[Place, tuple[Rule, ...]] = {
    ("allow_hosts",): ((_further, "Requests may go to another host."),),
    ("base_url",): (
        (_unencrypted, "It is asked without encryption."),
        (_elsewhere, "Another system answers for this connector."),
    ),
    ("kind",): ((_becomes("manual"), "Nobody can be asked there: a person looks and attests."),),
    ("secret_name",): ((_gone, "It is asked without its credential."),),
    ("secret_header",): ((_gone, "It is asked without its credential."),),
    ("lists",): ((_gone, "Effects that no call admits are no longer looked for."),),
    ("lists", "every_seconds"): ((_more, "Effects that no call admits are found later."),),
    ("circuit", "fault_ratio"): ((_more, "Calls go on for longer into a system that is in trouble."),),
    ("circuit", "min_calls"): ((_more, "Calls go on for longer into a system that is in trouble."),),
}

_RULES: Mapping[str, Mapping[Place, tuple[Rule, ...]]] = {
    "tool": _TOOL,
    "workflow": _WORKFLOW,
    "connector": _CONNECTOR,
}
