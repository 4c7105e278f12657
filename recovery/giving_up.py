"""What can be given up, and what can be ordered anew: asked of the task that a person stands before.

Of a rollback that is an undo or what it left; of a run that has ended, the question itself: what cannot be settled
any more, or is settled, is kept as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recovery import case as cases
from recovery import escalation, undos
from recovery.models import HumanTask
from recovery.rules.situation import surely_nothing
from runs import definitions
from runs.models import Action, Effect, Run
from runs.querysets import read_clock
from runs.states import RUN_OPEN

WITHOUT_A_WAY = ("compensation_required", "not_compensable")
ENDED = {"part": "only a part of it was done", "conflict": "its records contradict each other", "kept": "it stands"}
"""What may be accepted of a call whose run has ended, and what is accepted with it, in words."""


@dataclass(frozen=True)
class Question:
    """What this task asks about an effect that is being taken back, or that nobody takes back any more.

    kind      "undo" where its undo may be given up, "residual" where what stays may be accepted, one of ENDED where
              the run is over and the record may be left as it stands, else empty
    bar       why neither can be now, in a sentence
    again     how many effects are left to take back if its undo is ordered anew; 0 where it cannot be
    unknown_rest    whether nobody knows how much stays
    """

    kind: str = ""
    bar: str = ""
    again: int = 0
    original: Action | None = None
    effect: Effect | None = None
    undo: Action | None = None

    @property
    def unknown_rest(self) -> bool:
        return self.effect is not None and self.effect.residual == "untold"

    @property
    def minor(self) -> int | None:
        """How much is accepted: what stays, or all of it."""
        if self.effect is None:
            return self.original.value_minor if self.original is not None else None
        return self.effect.residual_minor if self.kind == "residual" else self.effect.amount_minor

    @property
    def words(self) -> str:
        """The wish, as it stands after "asks"."""
        step = self.original.step if self.original else "it"
        if self.kind in ENDED:
            return f"to leave {step} as the record has it: {ENDED[self.kind]}"
        return f"to accept what stays of {step}" if self.kind == "residual" else f"to give up the undo of {step}"

    def bound_to(self, plan: str) -> dict[str, Any]:
        """What a wish to give it up is made about: this effect in this plan, at this undo."""
        return {
            "plan": plan,
            "effect": self.original.action_id if self.original else "",
            "undo": self.undo.action_id if self.undo else "",
            "kind": self.kind,
        }


def of_task(run: Run, task: HumanTask) -> Question:
    """The question, read behind the open wall."""
    if run.state not in RUN_OPEN and task.action is not None and task.action.effect == "write":
        return _of_ended(run, task, task.action)
    if run.goal != "rollback" or run.state not in RUN_OPEN or task.action is None:
        return Question(bar="nothing of this task is being undone.")
    original = task.action.parent if task.action.role == "undo" else task.action
    assert original is not None  # noqa: S101  (an undo has the call that it takes back)
    effect, undo = Effect.objects.filter(action=original).first(), undos.of(original)
    if effect is None:
        return Question(bar="it is not proven that anything happened; that is settled first.", original=original)
    if effect.compensated_by_id is not None:
        open_rest = bool(effect.residual) and effect.signed_off_at is None
        return Question("residual" if open_rest else "", "it is taken back.", 0, original, effect, undo)
    if effect.signed_off_at is not None:
        return Question("", "its undo was given up already.", 0, original, effect, undo)
    return _of_undo(run, task, original, effect, undo)


def _of_ended(run: Run, task: HumanTask, action: Action) -> Question:
    """Nothing is sent or taken back any more. What a look or a person's word could still settle is left to those."""
    verdict = cases.read(run, action).evidence.verdict
    effect, kind = Effect.objects.filter(action=action).first(), ""
    if verdict == "conflict" or task.reason_code in escalation.CONTRADICTED:
        kind = "conflict"
    elif verdict == "partial_final":
        kind = "part"
    elif action.settled_at is not None:
        kind = "kept"
    bar = "what happened is not known; a look-up or a word with the provider's reference settles it."
    return Question(kind, "" if kind else bar, 0, action, effect)


def _of_undo(run: Run, task: HumanTask, original: Action, effect: Effect, undo: Action | None) -> Question:
    if undo is None:
        stuck = task.reason_code in WITHOUT_A_WAY
        return Question("undo" if stuck else "", "its undo is still to be made.", 0, original, effect, undo)
    if undos.did_nothing(undo):
        tool = definitions.of_run(run).tools[original.tool]
        again = len(undos.remaining(run)) if undos.in_time(original, tool, read_clock()) else 0
        return Question("undo", "", again, original, effect, undo)
    if undo.state == "awaiting_approval":
        return Question(
            "", "its undo waits for an approval, which is given or refused first.", 0, original, effect, undo
        )
    nothing = undo.state == "held" and surely_nothing(cases.read(run, undo).evidence)
    bar = "its undo may have happened, or still may; that is settled first."
    return Question("undo" if nothing else "", bar, 0, original, effect, undo)
