"""What attempts and evidence say together (DECISIONS 2).

Pure. The least certain attempt speaks for the action; each dispatch clears the verdict; sources that contradict each
other are a conflict, for the last word does not win.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from recovery.rules import trust
from recovery.rules.bounds import JOB_FAILED, live_key, looked_up, proof_of
from recovery.rules.evidence import Observation, Verdict
from recovery.rules.known import Fact, Known, Try

UNSETTLED = ("unknown", "ok_invalid")
FOUND = frozenset({"present", "present_final", "partial", "partial_final"})


def observation_of(known: Known) -> Observation:
    """What the attempts say together: an unsettled one outweighs whatever a later one said.

    A read changes nothing, so there the latest one speaks. An accepted job that failed is refused for good.
    """
    counting = _not_disproven(known)
    if not counting:
        return "permanent_reject" if job_failed(known) else "not_sent"
    if known.tool.effect == "read":
        return _said(known, known.tries[-1])
    said = [_said(known, one) for one in counting if not _settled_by_its_key(known, one)]
    for loudest in ("ok_invalid", "unknown", "ok_valid"):
        if loudest in said:
            return cast(Observation, loudest)
    return said[-1]


def _not_disproven(known: Known) -> list[Try]:
    """The tries that may have done something: a final absence settles every one before it; the last one speaks."""
    disproven = _disproven_up_to(_trusted(known).facts)
    return [one for one in known.tries if one.number > disproven] or list(known.tries[-1:])


def _said(known: Known, one: Try) -> Observation:
    """How one try ended, with what came later about it: its job failed, or a message says that it is done."""
    if one == known.tries[-1] and job_failed(known):
        return "permanent_reject"
    if one == known.tries[-1] and one.observed in (None, "unknown") and _word_given(known):
        return "ok_valid"
    return cast(Observation, one.observed or "unknown")


def _settled_by_its_key(known: Known, one: Try) -> bool:
    """Whether another try was answered for this one too: sent under the same key while the provider remembered it."""
    if _said(known, one) not in UNSETTLED:
        return False
    return any(_answers_for_its_key(known, other) for other in known.tries if other.generation == one.generation)


def _answers_for_its_key(known: Known, one: Try) -> bool:
    if one.generation != known.tries[-1].generation:
        return False
    ended = _said(known, one) == "ok_valid" or (one == known.tries[-1] and job_failed(known))
    return ended and _sent_under_live_key(known, one)


def _sent_under_live_key(known: Known, one: Try) -> bool:
    sent_at = one.sent_at or known.first_dispatched_at
    return sent_at is not None and live_key(known, sent_at) == "live"


def verdict_of(known: Known) -> Verdict:
    """What was learned since the last dispatch; sources that contradict each other are a conflict (F043)."""
    if overturned(known.facts) and not _confirmed(known):
        return "conflict"
    return _told_since(_trusted(known))


def bound_broke(known: Known) -> bool:
    """Whether all that contradicts the effect is an absence that rested on a broken bound, and nobody saw it since
    (F028)."""
    open_still = known.demoted and overturned(known.facts) and not _confirmed(known)
    return open_still and _told_since(_trusted(known)) != "conflict"


def _trusted(known: Known) -> Known:
    """With what each fact is still worth: broken bounds prove nothing, and a person's word never rested on them."""
    if not known.demoted:
        return known
    return replace(known, facts=tuple(map(_worth, known.facts)))


def _worth(fact: Fact) -> Fact:
    return fact if fact.kind == "person" else replace(fact, verdict=trust.weakened(fact.verdict))


def _confirmed(known: Known) -> bool:
    """Whether the effect that overturned an absence of a demoted connector was found once more since then.

    Of several tries no look can tell which one it sees, and another may still land: a person's word counts there.
    """
    facts = known.facts
    since = next((upto for upto in range(len(facts)) if overturned(facts[:upto])), len(facts))
    kinds = ("person", "probe") if len(known.tries) == 1 else ("person",)
    return known.demoted and any(one.kind in kinds and counted(one) == "present" for one in facts[since:])


def _told_since(known: Known) -> Verdict:
    since = _since_last_dispatch(known)
    told = [verdict for verdict in since if verdict not in ("none", "probe_failed")]
    if JOB_FAILED in told:
        done = known.tries and known.tries[-1].observed == "ok_valid"
        return "conflict" if done or _word_given(known) or FOUND & set(told) else "none"
    if _contradictory(told) or ("undone" in told and known.goal != "rollback"):
        return "conflict"
    for strongest in ("present_final", "present", "absent_final", "partial_final"):
        if strongest in told:
            return cast(Verdict, strongest)
    told = [verdict for verdict in told if verdict != "undone"]
    if told:
        return cast(Verdict, told[-1])
    return "probe_failed" if since and since[-1] == "probe_failed" else "none"


def _contradictory(told: list[str]) -> bool:
    """Also where a final absence is followed by word that the work still goes on."""
    if "conflict" in told:
        return True
    if "absent_final" not in told:
        return False
    return bool({"undone", *FOUND} & set(told)) or "processing" in told[told.index("absent_final") :]


def overturned(facts: tuple[Fact, ...]) -> bool:
    """Whether an effect turned up of a try that had been proven to have had none: the bound was not kept (F028)."""
    disproven = _disproven_up_to(facts)
    return any(fact.verdict in ("undone", *FOUND) and fact.after_attempt <= disproven for fact in facts)


def _disproven_up_to(facts: tuple[Fact, ...]) -> int:
    return max((fact.after_attempt for fact in facts if fact.verdict == "absent_final"), default=0)


def counted(fact: Fact) -> str:
    """What a fact says once its effects are counted: two are a conflict (F029). Parts of a batch may be many."""
    twice = fact.count is not None and fact.count >= 2 and fact.verdict in ("present", "present_final")
    return "conflict" if twice else fact.verdict


def job_failed(known: Known) -> bool:
    """Whether a poll or a callback said that the job which the last dispatch started has failed (DECISIONS 2)."""
    return JOB_FAILED in _since_last_dispatch(known)


def undone_outside(known: Known) -> bool:
    """Whether a look since the last dispatch found our effect taken back by somebody else (DECISIONS 2)."""
    return "undone" in _since_last_dispatch(known)


def _since_last_dispatch(known: Known) -> list[str]:
    """What was said about the last dispatch, oldest first.

    A message that says done is as strong as a reply, so where a look has to confirm a reply it is none itself: it is
    left out, with the progress that came before it.
    """
    told: list[str] = []
    for fact in known.facts:
        if not _speaks_of_last(known, fact):
            continue
        if _is_word(known, fact):
            told = [verdict for verdict in told if verdict != "processing"]
        else:
            told.append(counted(fact))
    return told


def _speaks_of_last(known: Known, fact: Fact) -> bool:
    """Each dispatch clears the verdict; but under one live key an effect of an earlier try is this one's too."""
    if not known.tries or fact.after_attempt >= known.tries[-1].number:
        return True
    last = known.tries[-1]
    earlier = [one for one in known.tries if one.number == fact.after_attempt and one.generation == last.generation]
    return fact.verdict in ("present", "present_final") and bool(earlier) and _sent_under_live_key(known, last)


def _is_word(known: Known, fact: Fact) -> bool:
    return fact.kind == "callback" and counted(fact) == "present" and proof_of(known) != "reply" and looked_up(known)


def _word_given(known: Known) -> bool:
    return any(_speaks_of_last(known, fact) and _is_word(known, fact) for fact in known.facts)
