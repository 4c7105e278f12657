"""Did anything change? The answer for one call, as an expression, so that lists and pages read the same rule."""

from __future__ import annotations

from django.db.models import Case, CharField, Exists, OuterRef, Q, Value, When

from recovery.escalation import UNCONFIRMED
from recovery.models import HumanTask
from runs.models import Action, Attempt, Effect
from runs.states import TASK_OPEN

UNSETTLED = ("unknown", "ok_invalid")
PROVEN_STATES = ("succeeded", "compensating", "compensation_held")
CONFLICTS = ("conflicting_evidence", "duplicate_effect", "idempotency_key_conflict")
OUTSIDE = "unadmitted_effect"
"""A task about what another system did and no call admits: that it is there is what the task says."""
RANK = ("conflict", "unknown", "partly", "partly_undone", "yes", "undone", "no")
"""Keys of looks.ANYTHING_CHANGED, the one that outweighs the others first."""


def of_action(at: str = "") -> Case:
    """What an action changed; `at` is the path to it ("action__" from a task)."""
    tried = Attempt.objects.filter(action=OuterRef(f"{at}pk"))
    done_in_part = Q(Exists(Action.objects.filter(parent=OuterRef(f"{at}pk"), role="item", state="succeeded")))
    left = Effect.objects.filter(action=OuterRef(f"{at}pk"), compensated_by__isnull=False).exclude(residual="")
    asked = HumanTask.objects.filter(run=OuterRef(f"{at}run"), action=OuterRef(f"{at}pk"), state__in=TASK_OPEN)
    contested = asked.filter(reason_code__in=CONFLICTS)
    open_question = Q(Exists(tried.filter(Q(observed__in=UNSETTLED) | Q(observed__isnull=True))))
    return Case(
        _when(Q(**{f"{at}effect": "read"}), "no"),
        _when(Q(**{f"{at}state": "conflict"}) | Q(**{f"{at}verdict": "conflict"}), "conflict"),
        _when(Q(**{f"{at}reason_code__in": CONFLICTS, f"{at}settled_at__isnull": True}), "conflict"),
        _when(Q(Exists(contested)), "conflict"),
        _when(Q(Exists(left)), "partly_undone"),
        _when(Q(**{f"{at}state": "compensated"}), "undone"),
        _when(Q(**{f"{at}state__in": PROVEN_STATES}), "yes"),
        _when(Q(**{f"{at}settled_at__isnull": False}) | Q(**{f"{at}verdict": "absent_final"}), "no"),
        _when(Q(**{f"{at}verdict__in": ("partial", "partial_final")}), "partly"),
        _when(done_in_part, "partly"),
        _when(open_question, "unknown"),
        default=Value("no"),
        output_field=CharField(),
    )


def of_task() -> Case:
    """What the call of a task changed; for a task about the run itself, what the whole run did."""
    run_effects = Effect.objects.filter(run=OuterRef("run")).exclude(action__role="undo")
    run_unknown = Action.objects.filter(run=OuterRef("run"), effect="write", settled_at__isnull=True, attempts__gt=0)
    run_unknown = run_unknown.exclude(state="partial_final")
    about_run = Q(action__isnull=True)
    return Case(
        _when(about_run & Q(Exists(run_unknown)), "unknown"),
        _when(about_run & Q(Exists(run_effects.filter(compensated_by__isnull=True))), "yes"),
        _when(about_run & Q(Exists(run_effects.exclude(residual=""))), "partly_undone"),
        _when(about_run & Q(Exists(run_effects)), "undone"),
        _when(about_run & Q(reason_code=OUTSIDE), "yes"),
        _when(about_run, "no"),
        _when(Q(reason_code=UNCONFIRMED, action__settled_at__isnull=False), "unknown"),
        When(Q(action__isnull=False), then=of_action("action__")),
        default=Value("no"),
        output_field=CharField(),
    )


def worst(answers: list[str]) -> str:
    """One answer for several tasks: the one that outweighs the others."""
    return min(answers, key=RANK.index, default="no")


def _when(condition: Q, answer: str) -> When:
    return When(condition, then=Value(answer))
