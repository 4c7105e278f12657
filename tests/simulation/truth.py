"""The invariants of docs/faults.md, held against the provider's ledger: after every event, and once all is quiet.

What the provider promised and did not keep, or what a person vouched for wrongly, is no fault of the record; it has
to come to light as a task, as soon as anybody can see it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from steadyhand.contract import OUTCOME_OF

from recovery.models import DeadLetter, Decision, HumanTask
from recovery.rules import messages
from recovery.rules.circuit import DEFAULT_TERMS
from runs.models import Action, Attempt, CircuitSlot, Effect, Event, Run
from runs.states import ACTION, ACTION_SETTLED, RUN_OPEN, TASK_OPEN
from tests.recovery import rebuild
from tests.simulation import shop
from tests.simulation.remote import Effect as Line
from tests.simulation.remote import Remote
from tests.simulation.shop import IN_FLIGHT, LAG, TIMEOUT, Flavour
from tests.simulation.tables import Memory
from tests.simulation.world import Broken, World

OPEN_END = ("unknown", "probing", "absent", "probe_failed", "processing", "partial", "conflict", "partial_final")
UNDOS = ("void", "recall")
COUNTERS = ("turns", "tool_calls", "input_tokens", "output_tokens", "cost_minor")
NOTHING_SAID = ("cancelled_by_user", "not_applied")


@dataclass
class Truth:
    """Everything that must hold. `vouched`: what people said of a call, by its reference."""

    world: World
    remote: Remote
    flavour: Flavour
    vouched: dict[str, str]
    may_break: frozenset[str] = frozenset()
    _ended_tries: dict[Any, tuple[Any, ...]] = field(default_factory=dict)
    _ended_runs: dict[Any, tuple[Any, ...]] = field(default_factory=dict)
    _counted: dict[Any, tuple[int, ...]] = field(default_factory=dict)
    _looked: tuple[int, int, int] = (-1, -1, -1)
    _read: int = 0

    @property
    def memory(self) -> Memory:
        return self.world.memory

    # --- after every event ----------------------------------------------------------------------------------------

    def check(self) -> None:
        """What must hold at any moment; nothing is read again while nothing has changed."""
        at = (self.memory.commits, len(self.remote.ledger), len(self.remote.arrivals))
        if at == self._looked:
            return
        before, self._looked = self._looked, at
        if at[1:] != before[1:]:
            self._arrivals()
            self._effects()
        if at[0] != before[0]:
            self._tries()
            self._runs()
            self._tasks()

    def _arrivals(self) -> None:
        """I3, I5, I9, I17: what arrives was permitted, in its turn, under one meaning, no more often than allowed."""
        by_reference: dict[str, list[Any]] = defaultdict(list)
        for one in self.remote.arrivals:
            if one.call.write:
                by_reference[one.call.reference].append(one)
        actions = {row["action_id"]: row for row in self.memory.rows(Action)}
        for reference, found in by_reference.items():
            row = actions.get(reference)
            if row is None:
                raise Broken("I3", f"{found[0].call.tool} arrived without any record of it")
            self._arrived(row, found)

    def _arrived(self, row: Any, found: list[Any]) -> None:
        tool, tries = row["tool"], row["attempts"]
        if len({repr(sorted((one.call.arguments or {}).items())) for one in found}) > 1:
            raise Broken("I9", f"{tool} arrived with other arguments under one identity")
        if len(found) > tries:
            raise Broken("I17", f"{len(found)} arrivals of {tool} for {tries} recorded tries")
        self._keys(found)
        letters = [one for one in self.memory.rows(DeadLetter) if one["action_id"] == row["id"]]
        granted = sum(one["generation"] - 1 + (one["state"] != "recorded") for one in letters)
        allowed = shop.UNDO_ATTEMPTS if row["role"] == "undo" else self.flavour.max_attempts
        if tries > allowed + granted:
            raise Broken("I17", f"{tries} tries of {tool}, {allowed} are allowed")

    def _keys(self, found: list[Any]) -> None:
        """I1: nothing is sent under a key that the provider may have forgotten (F046)."""
        first: dict[str, float] = {}
        for one in found if self.flavour.keyed and self.flavour.retention is not None else ():
            if one.arrived_at - first.setdefault(one.call.key, one.arrived_at) > self.flavour.retention:
                raise Broken("I1", f"{one.call.tool} was sent under a key that had ended")

    def _effects(self) -> None:
        """I1: two requests of ours are never two effects, as long as the provider keeps its promises."""
        by_reference: dict[str, list[Line]] = defaultdict(list)
        for one in self.remote.ledger:
            by_reference[one.call.reference].append(one)
        for reference, lines in by_reference.items():
            if len({one.exchange for one in lines}) > 1 and not self._excused(reference):
                raise Broken("I1", f"{len(lines)} effects of {lines[0].call.tool}, by {len(lines)} requests of ours")
        self._undone()

    def _undone(self) -> None:
        """I15: an effect is taken back at most once, and the latest first."""
        undoing: dict[str, set[str]] = defaultdict(set)
        for line in self.remote.ledger:
            if line.call.undoes:
                undoing[line.call.undoes].add(line.call.reference)
        for target, references in undoing.items():
            if len(references) > 1:
                raise Broken("I15", f"{target} was taken back by {len(references)} undos")
        self._in_reverse([line.call.undoes for line in self.remote.ledger if line.call.tool in UNDOS])

    def _in_reverse(self, taken: list[str]) -> None:
        """Nothing is taken back before what was both done and proven after it."""
        done = {line.id: place for place, line in enumerate(self.remote.ledger)}
        proven = {line.id: place for place, line in enumerate(self._proven())}
        runs = {row["action_id"]: row["run_id"] for row in self.memory.rows(Action)}
        of_run = {line.id: runs.get(line.call.reference) for line in self.remote.ledger}
        known = [name for name in dict.fromkeys(taken) if name in proven]
        for first, then in combinations(known, 2):
            same = of_run[first] == of_run[then]
            if same and done[first] < done[then] and proven[first] < proven[then]:
                raise Broken("I15", "an effect was taken back before a later one")

    def _proven(self) -> list[Line]:
        """The lines of the ledger in the order in which the record proved their effects."""
        by_reference = {line.call.reference: line for line in self.remote.ledger if not line.call.undoes}
        actions = self.memory.tables.get(Action, {})
        found = [by_reference.get(actions[row["action_id"]]["action_id"]) for row in self.memory.rows(Effect)]
        return [line for line in found if line is not None]

    def _tries(self) -> None:
        """I6: what a try ended as stays what it is, whoever comes late. I18: tries are numbered without gaps."""
        counted: dict[Any, int] = defaultdict(int)
        for row in self.memory.rows(Attempt):
            counted[row["action_id"]] += 1
            if row["ended_at"] is None:
                continue
            end = (row["ended_at"], row["observed"], row["reason_code"])
            if self._ended_tries.setdefault(row["id"], end) != end:
                raise Broken(
                    "I6", f"a try that had ended as {self._ended_tries[row['id']][1]} became {row['observed']}"
                )
        for row in self.memory.rows(Action):
            if row["looks"] > 3 * self.flavour.max_looks + 30:
                raise Broken("I8", f"{row['looks']} looks for {row['tool']}")
            if row["role"] == "call" and counted[row["id"]] != row["attempts"]:
                raise Broken("I18", f"{row['tool']} counts {row['attempts']} tries and has {counted[row['id']]}")

    def _runs(self) -> None:
        """I7: an end is an end. I8: counters only grow, up to their limit. I5: nothing is sent beside an open end."""
        for row in self.memory.rows(Run):
            counters = tuple(row[name] for name in COUNTERS)
            before = self._counted.get(row["id"], counters)
            if any(now < then for now, then in zip(counters, before, strict=True)):
                raise Broken("I8", f"a counter of the run fell from {before} to {counters}")
            self._counted[row["id"]] = counters
            for name in COUNTERS[:2]:
                if row[name] > row[f"max_{name}"]:
                    raise Broken("I8", f"{row[name]} {name} of {row[f'max_{name}']}")
            if row["state"] not in RUN_OPEN:
                end = (row["state"], row["outcome"])
                if self._ended_runs.setdefault(row["id"], end) != end:
                    raise Broken("I7", f"a run that had ended as {self._ended_runs[row['id']]} became {end}")
        self._in_turn()

    def _in_turn(self) -> None:
        open_ends = [row for row in self.memory.rows(Action) if row["state"] in OPEN_END and row["role"] == "call"]
        for row in self.memory.rows(Attempt) if open_ends else ():
            action = self.memory.tables[Action][row["action_id"]]
            if row["ended_at"] is not None or action["role"] == "undo" or action["effect"] == "read":
                continue
            found = next((other for other in open_ends if _comes_before(other, action, row)), None)
            if found is not None:
                raise Broken("I5", f"{action['tool']} was sent while {found['tool']} is {found['state']}")

    def _tasks(self) -> None:
        """I2: a person's question has an owner; I7: one for each cause (held by the table itself)."""
        for row in self.memory.rows(HumanTask):
            if row["state"] in TASK_OPEN and not row["owner_team"]:
                raise Broken("I2", f"task {row['number']} has no owner")
        asked = {row["action_id"] for row in self.memory.rows(HumanTask) if row["state"] in TASK_OPEN}
        for row in self.memory.rows(Action):
            unknown = row["state"] in OPEN_END and row["reason_code"] == "external_outcome_unknown"
            if unknown and row["role"] == "call" and row["id"] not in asked:
                raise Broken("I2", f"nobody was asked about a {row['tool']} that is {row['state']}")
        self._trials()

    def _trials(self) -> None:
        """I19: no more trials at a time than a circuit has slots."""
        live: dict[Any, int] = defaultdict(int)
        for row in self.memory.rows(CircuitSlot):
            live[row["circuit_id"]] += row["ended_at"] is None and row["lease_until"] > self.world.clock()
        if max(live.values(), default=0) > DEFAULT_TERMS.slots:
            raise Broken("I19", f"{max(live.values())} trials at once, {DEFAULT_TERMS.slots} are allowed")

    # --- when all is quiet ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """What must hold once nothing more will happen by itself."""
        self.remote.settle()
        self.check()
        self._no_orphan()
        for row in self.memory.rows(Action):
            if row["effect"] == "write" and row["role"] != "item":
                self._call(row)
        for row in self.memory.rows(Run):
            self._end_of(row)
        self._history()

    def _no_orphan(self) -> None:
        """I2, I16: every run is over or somebody's; nothing waits for what will not come."""
        tasks = [row for row in self.memory.rows(HumanTask) if row["state"] in TASK_OPEN]
        for row in self.memory.rows(Run):
            if row["state"] not in RUN_OPEN:
                continue
            asked = any(one["run_id"] == row["id"] for one in tasks)
            if not asked and not self._moves(row):
                raise Broken("I2", f"a run rests in {row['state']} ({row['reason_code']}) and nobody was asked")
            if row["state"] == "escalated" and not asked:
                raise Broken("I2", "a run rests escalated without a task")
        for one in self.memory.rows(DeadLetter):
            if not one["owner_team"]:
                raise Broken("I2", "a dead letter has no owner")

    def _moves(self, run: Any) -> bool:
        """Whether something will still move this run by itself: it would have, by now, if time could bring it."""
        actions = [row for row in self.memory.rows(Action) if row["run_id"] == run["id"]]
        waits = any(row["due_at"] is not None for row in actions)
        asked = any(row["state"] in ("requested", "running") for row in self.memory.rows(Decision))
        return (waits or asked) and self.world.now >= self.world.horizon

    def _call(self, row: Any) -> None:
        """I1, I4: what the record says of a call is what the ledger says, or somebody has been asked."""
        reference = row["action_id"]
        lines, standing = self.remote.effects(reference), self.remote.standing(reference)
        whole = [line for line in standing if line.whole]
        if self._excused(reference) or self._asked(row):
            return
        state = row["state"]
        if state == "succeeded" and (len(whole), len(standing)) != (1, 1):
            raise Broken(
                "I4", f"{row['tool']} is said to be done, the ledger has {len(standing)} ({len(whole)} whole)"
            )
        if state in ("void", "rejected", "refused_permanent") and lines and not self._known_undone(lines):
            raise Broken("I1", f"{row['tool']} is said to have done nothing, the ledger has {len(lines)}")
        if state == "compensated" and standing:
            raise Broken("I15", f"{row['tool']} is said to be taken back and stands")
        if state in OPEN_END and row["settled_at"] is None and not row["due_at"]:
            self._parts(row, [item for line in standing for item in line.items])

    def _parts(self, row: Any, done: list[str]) -> None:
        """I2, I4: a call whose run is over may rest with nobody asked only if each of its items has its end, and the
        ledger says so too: then nothing of it is in question."""
        items = [one for one in self.memory.rows(Action) if one["parent_id"] == row["id"] and one["role"] == "item"]
        ended = bool(items) and all(one["settled_at"] is not None for one in items)
        if not ended or self.memory.tables[Run][row["run_id"]]["state"] in RUN_OPEN:
            raise Broken("I2", f"{row['tool']} rests in {row['state']} and nobody was asked")
        said = [one["step"].partition(":")[2] for one in items if one["state"] == "succeeded"]
        if sorted(said) != sorted(done):
            raise Broken("I4", f"of {row['tool']} {sorted(said)} are said to be done, the ledger has {sorted(done)}")

    def _known_undone(self, lines: list[Line]) -> bool:
        return all(line.undone_by for line in lines)

    def _end_of(self, run: Any) -> None:
        """I4, I5, I14: how a run ended follows from its calls, and what its customer reads follows from that."""
        actions = [row for row in self.memory.rows(Action) if row["run_id"] == run["id"] and row["role"] == "call"]
        unsettled = [row for row in actions if row["state"] not in ACTION_SETTLED]
        if run["state"] in ("completed", "failed") and unsettled:
            raise Broken("I5", f"a run ended as {run['state']} beside a {unsettled[0]['tool']} that is not settled")
        if run["outcome"] == "ok" and run["state"] != "completed":
            raise Broken("I4", "ok before the end")
        if run["reason_code"] and OUTCOME_OF[run["reason_code"]].value != run["outcome"]:
            raise Broken("I14", f"{run['reason_code']} is told as {run['outcome']}")
        self._customer(run, actions)

    def _customer(self, run: Any, actions: list[Any]) -> None:
        """I14: no sentence but ours, and "nothing was changed" only where the ledger says so too."""
        reason, told = run["reason_code"], run["customer_message"]
        if reason is None:
            return
        ours = messages.customer_message(reason)
        if not told.startswith(ours) and messages.taken_back(reason) != told:
            raise Broken("I14", f"the customer is told {told!r}, the reason is {reason}")
        if reason in NOTHING_SAID and run["state"] == "cancelled":
            kept = [row for row in actions if self.remote.standing(row["action_id"])]
            doubtful = [row for row in kept if not self._excused(row["action_id"]) and not self._asked(row)]
            if doubtful:
                raise Broken("I14", f"told that nothing was changed, and {doubtful[0]['tool']} stands")

    def _history(self) -> None:
        """I18, I11: the states follow from the events alone; each change has its line."""
        moved = [row for row in self.memory.rows(Event) if row["to_state"] in ACTION and "task" not in row["data"]]
        last = {row["action_id"]: row["to_state"] for row in moved}
        for row in self.memory.rows(Action):
            if row["attempts"] and row["role"] == "call" and last.get(row["id"]) != row["state"]:
                raise Broken("I18", f"no event says that {row['tool']} is {row['state']}")
        found = rebuild.differing(shop.TENANT)
        if found:
            raise Broken("I18", f"history and rows disagree: {found}")
        ends = [row for row in self.memory.rows(Event) if row["kind"] in ("completed", "failed", "cancelled")]
        runs = [row["run_id"] for row in ends]
        if len(runs) != len(set(runs)):
            raise Broken("I7", "a run ended more than once")

    # --- what is nobody's fault here -----------------------------------------------------------------------------

    def _excused(self, reference: str) -> bool:
        return reference in self.vouched or any(self._promise_broken(one) for one in self._exchanges(reference))

    def _exchanges(self, reference: str) -> list[Any]:
        return [one for one in self.remote.arrivals if one.call.reference == reference]

    def _promise_broken(self, exchange: Any) -> bool:
        """Whether a request landed later, or was seen later, than the provider promised; or one call landed twice
        where nobody can look it up."""
        fate = exchange.fate
        slow = max((fate.commits or 0.0), *(fate.again or (0.0,))) > IN_FLIGHT + TIMEOUT or fate.lag > LAG
        unseen = bool(fate.again or not fate.whole) and not self.flavour.looks
        return slow or unseen or (fate.answer == "accepted" and bool(fate.again))

    def _asked(self, row: Any) -> bool:
        """Whether a person has a question about this call, or had: what is wrong came to light."""
        about = [one for one in self.memory.rows(HumanTask) if one["action_id"] == row["id"]]
        return any(one["state"] in TASK_OPEN or one["kind"] == "duplicate_effect" for one in about)


def _comes_before(other: Any, action: Any, attempt: Any) -> bool:
    """Whether the outcome of an earlier write was in question when this was sent."""
    same = other["run_id"] == action["run_id"] and other["id"] != action["id"]
    earlier = other["turn"] < action["turn"] and other["effect"] == "write"
    since = other["uncertain_since"]
    return same and earlier and since is not None and since <= attempt["dispatched_at"]
