"""Bugs planted in the real code, one at a time: a line of a function is changed, and episodes have to find out.

Each bug names the ground on which it is hunted: faults played alone, or a set-up of its own, by rising seeds. What
breaks there is the catch: an invariant, an expectation of the fault, or the tables' own refusal.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.db import IntegrityError, InternalError

from runs.states import IllegalMove, StaleState
from tests.simulation.agents import Temper
from tests.simulation.episode import CREDIT, PLAIN, READ, Setup, play
from tests.simulation.fates import GOOD, late, lost, refusal
from tests.simulation.faults import DEAR, EXPORT, FAULTS, NOTIFY, calm
from tests.simulation.patches import Patches
from tests.simulation.remote import Outage
from tests.simulation.shop import Flavour

SEEDS = 6
CATCHES = (AssertionError, IntegrityError, InternalError, IllegalMove, StaleState)
"""What counts as a catch: an invariant, an expectation, or a no of the tables. Code that merely breaks is none."""
QUIET = {"loses": 0.0, "doubles": 0.0, "delays": 0.0}


@dataclass(frozen=True)
class Bug:
    """One changed line. `where` is module:function (or module:Class.function); `ground` where it is looked for."""

    name: str
    where: str
    old: str
    new: str
    ground: tuple[str, ...]


def plant(patches: Patches, bug: Bug) -> None:
    """Put the bug into the code. Raises LookupError where the line it changes is no longer there."""
    module_name, _, path = bug.where.partition(":")
    module = importlib.import_module(module_name)
    owner_name, _, name = path.rpartition(".")
    owner: Any = getattr(module, owner_name) if owner_name else module
    held = getattr(owner, name)
    original = inspect.unwrap(held)
    source = textwrap.dedent(inspect.getsource(original))
    if source.count(bug.old) != 1:
        raise LookupError(f"{bug.name}: {bug.where} has {source.count(bug.old)} times: {bug.old}")
    scope: dict[str, Any] = {}
    exec(compile(source.replace(bug.old, bug.new), f"<planted {bug.name}>", "exec"), module.__dict__, scope)
    made = scope[name]
    if owner_name:
        patches.attribute(owner, name, made)
    else:
        patches.everywhere(held, made)
        _handlers(patches, held, made)


def _handlers(patches: Patches, original: Any, made: Any) -> None:
    """Tables that hold functions by what they are for."""
    from recovery import settle
    from recovery.work import sweep

    for table in (settle._HANDLERS, sweep.STEPS):
        for name, handler in list(table.items()):
            if handler is original:
                patches.entry(table, name, made)  # type: ignore[arg-type]


def caught(bug: Bug) -> str | None:
    """The first catch on its ground; None if the bug survives."""
    for seed in range(SEEDS):
        for name in bug.ground:
            found = _hunt(name, seed)
            if found is not None:
                return f"{found} ({name}, seed {seed})"
    return None


def _hunt(name: str, seed: int) -> str | None:
    setup = calm(name, seed) if name in FAULTS else GROUNDS[name](seed)
    try:
        stage = play(setup)
        if name in FAULTS:
            FAULTS[name].expects(stage)
    except CATCHES as wrong:
        return f"{type(wrong).__name__}: {wrong}".splitlines()[0][:140]
    return None


# --- grounds of their own ---------------------------------------------------------------------------------------


def _ground(**fields: Any) -> Callable[[int], Setup]:
    return lambda seed: Setup(seed, **({"broker": dict(QUIET)} | fields))


GROUNDS: dict[str, Callable[[int], Setup]] = {
    "keyed, nobody to ask, lost": lambda seed: _ground(
        flavour=Flavour(keyed=True, looks=False), told={"credit": [lost(), GOOD], "ship": [lost(), GOOD]}
    )(seed),
    "unkeyed, late": lambda seed: _ground(told={"credit": [late(20.0 + 5.0 * seed)]})(seed),
    "agents that die in their calls": lambda seed: _ground(
        temper=Temper(dies=0.6), told={"credit": [late(15.0)]}
    )(seed),
    "zombies": lambda seed: _ground(temper=Temper(pauses=1.0), told={"credit": [GOOD]})(seed),
    "zombies that hear of a refusal": lambda seed: _ground(
        temper=Temper(pauses=1.0), told={"credit": [replace(GOOD, answer="gateway")]}
    )(seed),
    "dear": lambda seed: _ground(
        plan=(READ, DEAR, CREDIT), flavour=Flavour(keyed=True, threshold=True, approval=1800),
        people={"every": (5.0, 40.0), "verbs": ("approve",)},
    )(seed),
    "keys that end": lambda seed: _ground(
        flavour=Flavour(keyed=True, retention=90.0), outages=[Outage(12.0, 200.0 + seed, "unavailable")],
        told={"credit": [lost(replace(GOOD, commits=None)), GOOD]},
    )(seed),
    "jobs that fail": lambda seed: _ground(
        plan=(READ, NOTIFY, EXPORT),
        flavour=Flavour(keyed=True, looks=False),
        told={"export": [replace(GOOD, answer="accepted", commits=None, fails=15.0)],
              "notify": [replace(GOOD, answer="accepted", commits=None, fails=15.0)]},
    )(seed),
    "many agents in an outage": lambda seed: Setup(
        seed, broker=dict(QUIET), flavour=Flavour(keyed=True), temper=Temper(), tempers=(Temper(),) * 14,
        outages=[Outage(0.9 + seed, 200.0, "unavailable")], plan=(READ, CREDIT, READ, CREDIT),
    ),
    "rolled back": lambda seed: _ground(plan=(*PLAIN, READ), temper=Temper(rolls_back=3))(seed),
    "cancelled late": lambda seed: _ground(plan=(*PLAIN, READ), temper=Temper(cancels=3))(seed),
    "hurried": lambda seed: _ground(temper=Temper(hurries=True), told={"credit": [lost()]})(seed),
    "limited for long": lambda seed: _ground(told={"credit": [refusal("limited", asks=2.0)] * 8})(seed),
    "two of one": lambda seed: _ground(told={"credit": [replace(GOOD, again=(20.0,))]})(seed),
    "lost messages": lambda seed: Setup(seed, broker={"loses": 0.8, "doubles": 0.0, "delays": 0.0}),
    "doubled messages": lambda seed: Setup(
        seed, broker={"loses": 0.0, "doubles": 1.0, "delays": 0.0}, told={"ship": [replace(GOOD, replies=4.0)]}
    ),
    "few calls": lambda seed: _ground(flavour=Flavour(max_calls=2))(seed),
    "unkeyed, never done": lambda seed: _ground(
        told={"credit": [lost(replace(GOOD, commits=None)), lost(replace(GOOD, commits=None)), lost()]}
    )(seed),
    "lost, then refused": lambda seed: _ground(
        flavour=Flavour(keyed=True, looks=False), told={"credit": [lost(), refusal("refused")]}
    )(seed),
    "half of it": lambda seed: _ground(told={"credit": [lost(replace(GOOD, whole=False))]})(seed),
}  # fmt: skip

T, B, A = "recovery.rules.testimony", "recovery.rules.bounds", "recovery.rules.assembly"

BUGS: tuple[Bug, ...] = (
    # identity, keys, retries
    Bug("time in the key", "recovery.permits:_grant",
        "vault.remote_key(prepared.facts.definition.keys, action.action_id, generation)",
        "vault.remote_key(prepared.facts.definition.keys, action.action_id + str(read_clock()), generation)",
        ("keyed, nobody to ask, lost",)),
    Bug("a key for each try", "recovery.permits:_grant",
        "action.action_id, generation)\n    refresh", "action.action_id, action.attempts + 1)\n    refresh",
        ("keyed, nobody to ask, lost",)),
    Bug("retry in the client", "tests.simulation.outside:Outside._leave",
        "exchange = self.remote.send(call, world.now)",
        "self.remote.send(call, world.now)\n    exchange = self.remote.send(call, world.now)",
        ("F025",)),
    Bug("no intent before the send", "recovery.work.worker:start",
        "return _take_errand(decision, run, action)",
        "sending.deliver(_take_errand(decision, run, action))\n        return None",
        ("F052",)),
    Bug("an expired key counts as live", f"{B}:live_key",
        'return "live" if now + needed < ends else "expired"', 'return "live"', ("keys that end", "F046")),
    Bug("one try too many", f"{A}:assemble",
        "len(known.tries) < known.max_attempts", "len(known.tries) <= known.max_attempts",
        ("limited for long", "F105")),
    Bug("the arguments are not in the identity", "runs.vault:action_id",
        '("action", str(run_id), step, tool, str(tool_version), arguments_hash)',
        '("action", str(run_id), step, tool, str(tool_version))', ("F088", "F125")),
    # what an answer means
    Bug("a server error is a refusal", "recovery.rules.http_refusals:_leaves_it_open",
        "return status not in NOT_PROCESSED", "return False", ("F033", "F034")),
    Bug("a timeout frees the call", "recovery.rules.classify:classify",
        'return unknown(tool, f"No answer came back: {observation.kind.replace(\'_\', \' \')}.")',
        'return limited("again", 1.0)', ("F025", "F026")),
    Bug("200 is proof enough", "recovery.rules.classify:classify",
        "return _about_ours(_reply(observation, tool, clock, breach, before), tool, before)",
        "found = _reply(observation, tool, clock, breach, before)\n"
        "    return replace(found, observed='ok_valid', reason='completed') if observation.status == 200 else found",
        ("F085", "F086")),
    Bug("a result of another call is ours", "recovery.rules.identities:differing",
        "return path", "return None", ("F048",)),
    Bug("a key that is known with other data is only refused", "recovery.reports:_beside_its_outcome",
        "found.key_conflict or found.conflict or found.processing", "found.processing", ("F047",)),
    # evidence
    Bug("final before the bound", f"{B}:finalize",
        "final = final_at is not None and started_at >= final_at", "final = True", ("unkeyed, late", "F027")),
    Bug("the visibility lag is forgotten", f"{B}:final_from",
        "seconds=rule.max_in_flight_seconds + rule.max_visibility_lag_seconds",
        "seconds=rule.max_in_flight_seconds / 4",
        ("unkeyed, late", "F027")),
    Bug("a verdict outlives the next dispatch", f"{T}:_speaks_of_last",
        "if not known.tries or fact.after_attempt >= known.tries[-1].number:", "if True:",
        ("unkeyed, never done", "F027")),
    Bug("the latest try speaks", f"{T}:observation_of",
        'for loudest in ("ok_invalid", "unknown", "ok_valid"):', "for loudest in (said[-1],):",
        ("lost, then refused",)),
    Bug("the first evidence wins", f"{T}:_told_since",
        "if _contradictory(told) or",
        "if told:\n        return cast(Verdict, told[0])\n    if", ("F041", "F027", "unkeyed, late")),
    Bug("two effects count as one", "steadyhand.judging:judge",
        "if len(ours) > 1:", "if len(ours) > 99:", ("two of one", "F029")),
    Bug("existence is enough", "steadyhand.judging:_judge_one", 'if found.verdict != "present":',
        'found = replace(found, verdict="present")\n    if False:',
        ("F045", "half of it", "F043")),
    Bug("a look that failed found nothing", "recovery.work.verify:prove",
        "verdict = bounds.finalize(finding.verdict,",
        "verdict = bounds.finalize('absent' if finding.verdict == 'probe_failed' else finding.verdict,",
        ("F042",)),
    Bug("no later count", "recovery.closing:_recount_at", "if after is None or", "if True or",
        ("two of one", "F029")),
    Bug("looks without an end", f"{A}:early_looks_spent",
        "known.looks_made >= known.tool.reconcile.max_looks", "False", ("F042", "F020")),
    # leases and fences
    Bug("a lease that ends means not sent", "recovery.leases:_expire",
        'observed="unknown"', 'observed="not_sent"', ("agents that die in their calls",)),
    Bug("leases never end", "recovery.leases:expire_of_run",
        "if one.ended_at is None and one.lease_until <= now", "if False", ("agents that die in their calls",)),
    Bug("a lost message is never sent again", "recovery.work.sweep:_nudge",
        "nudges.each(ids, ring)", "pass", ("lost messages",)),
    # order, budgets, approvals
    Bug("nothing waits for an open write", "recovery.permits:_in_turn",
        "waits_for = seen.blocking(run, existing)", "waits_for = None", ("hurried", "F026")),
    Bug("one call too many", "runs.budgets:fired",
        "getattr(run, counter) >= getattr(run, f\"max_{counter}\")",
        "getattr(run, counter) > getattr(run, f\"max_{counter}\")",
        ("few calls", "F090")),
    Bug("one approval for the whole run", "recovery.gate:needs_care",
        "return prepared.tool.effect", "return False and prepared.tool.effect", ("dear", "F127")),
    Bug("silence is an approval", "recovery.work.approvals:expire",
        'action, "void",', 'action, "approved",', ("F127",)),
    Bug("unknown usage is zero", "recovery.turns:_counted",
        "kind: stand_ins.get(kind, 0) for kind in missing", "kind: 0 for kind in missing", ("F104",)),
    Bug("another version goes on", "recovery.permits:another_version",
        'settle.escalate_run(run, "definition_changed", actor, failed_step=step)', "pass", ("F022",)),
    # what becomes of a run
    Bug("the agent's word ends the run", "recovery.endings:conclude",
        "missing = missing_effect(run)", "missing = None", ("F091",)),
    Bug("the customer is told what the model says", "recovery.endings:_complete",
        'customer_message=" ".join(told)', "customer_message=run.claim", ("F092",)),
    Bug("a cancel forgets what was done", "recovery.course:_cancelled_reason",
        'return "cancelled_with_effects" if run.effects.filter(STANDING).exists() else "cancelled_by_user"',
        'return "cancelled_by_user"',
        ("cancelled late",)),
    Bug("an unknown write is nobody's", "recovery.settle:_plan_look",
        'if OUTCOME_OF[reason].value == "needs_human":', "if False:", ("F042", "F020")),
    Bug("no dead letter", "recovery.letters:write", "if letter is None:",
        "if letter is None:\n        return letter\n    if False:",
        ("F105",)),
    Bug("a move without its event", "runs.record:move_action",
        "write_event(run, kind, actor, action=action",
        "0 and write_event(run, kind, actor, action=action", ("F026",)),
    Bug("a late message turns the call round", "recovery.callbacks:_consequence",
        "if action.settled_at is not None or action.attempts == 0:", "if action.attempts == 0:", ("F072",)),
    Bug("a failed job is done", "recovery.rules.told:meaning",
        'return "job_failed"', 'return "present"', ("jobs that fail",)),
    # taking back
    Bug("the first effect is taken back first", "recovery.undos:in_order",
        "return rank, -(effect.pk if effect else action.pk).int",
        "return rank, (effect.pk if effect else action.pk).int",
        ("rolled back",)),
    Bug("an undo that failed is no obstacle", "recovery.rollback:_of_undo",
        'return Place("escalated", "compensation_failed", undo or original)', "return None", ("F138",)),
    Bug("taken back before it is proven", "recovery.rollback:_of_undo",
        'if undo.state == "succeeded":', 'if undo.state in ("succeeded", "permitted", "unknown"):', ("F139",)),
    # circuits
    Bug("the circuit is not asked", "recovery.circuits:find", "return next(", "return None and next(",
        ("many agents in an outage",)),
    Bug("as many trials as like", "recovery.rules.circuit:trials_free",
        "return min(terms.slots, terms.successes - at.good) - at.live", "return 99", ("many agents in an outage",)),
)  # fmt: skip
