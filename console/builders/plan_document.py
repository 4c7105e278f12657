"""The plan of a rollback as a document of its own: what is or would be undone, who decided that, who is next."""

from __future__ import annotations

from django.urls import reverse

from console.access import Visit
from console.builders import plan as plans
from console.builders import run as runs
from console.builders import words
from console.builders.record import look_of_run
from console.pages.common import Empty, Link, Live
from console.pages.plan import PlanPage, PlanWord
from recovery import planning
from recovery.models import Decision
from recovery.rules.policy import LABELS
from runs.models import Run

ABOUT_PLANS = ("compensate", "approve", "reject", "waive", "cancel")
MOST_WORDS = 50
NOTHING = "A plan lists each write of a run that is proven or may have happened, in the order in which it is undone."


def page(visit: Visit, run: Run, *, live: Live) -> PlanPage:
    """What would be undone, for a run that goes on; what is or was undone, for one that is taken back."""
    places = planning.progress(run)
    card = plans.of_places(run, places) if places else None
    said, moves = runs.moves(visit, run, runs.tasks(run))
    return PlanPage(
        run_id=str(run.pk),
        title=f"Plan of what is undone: {words.title(run.intent)}",
        told=_told(run),
        state=look_of_run(run),
        crumbs=[Link("Runs", reverse("runs")), Link(str(run.pk), reverse("run", args=[run.pk])), Link("Plan", "")],
        run=Link("Run", reverse("run", args=[run.pk]), "activity"),
        live=live,
        plan=card,
        words=_words(run, card.hash if card else ""),
        moves=moves,
        moves_words=said,
        empty=None if card else Empty("Nothing is to be undone.", NOTHING),
    )


def _told(run: Run) -> str:
    if run.goal == "rollback":
        return "This run is taken back. Undos go out one after the other; the first that fails stops the rest."
    if run.ended_at is not None:
        return "This run has ended, and nobody ordered an undo. This is what it left, last effect first."
    return "Nothing is being undone. This is what would be, in this order, if it were ordered now."


def _words(run: Run, now_hash: str) -> list[PlanWord]:
    """Who ordered, approved, refused or gave up what; the newest first."""
    rows = Decision.objects.filter(run=run, verb__in=ABOUT_PLANS).select_related("by").order_by("-pk")[:MOST_WORDS]
    return [_word(one, now_hash) for one in rows]


def _word(decision: Decision, now_hash: str) -> PlanWord:
    bound = str(decision.snapshot.get("plan", ""))
    return PlanWord(
        at=decision.requested_at,
        who=str(decision.by) if decision.by else decision.actor_kind,
        what=LABELS.get(decision.verb, decision.verb),
        reason=decision.reason,
        plan_hash=bound,
        standing="" if not bound else "the plan as it is now" if bound == now_hash else "an earlier plan",
    )
