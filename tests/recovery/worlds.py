"""The outside worlds that a piece of evidence leaves possible, and the harm an answer would do in each.

A world fits as long as every declared promise holds. The promises are:
- a contract that asks for a look has one (registration refuses the others); where nobody can be asked, the valid
  reply stands for itself;
- a definite refusal, or a call that was never sent, changed nothing and is over;
- under `proof: reply` a valid reply means one whole effect, unless a record at the provider says otherwise;
- a final look-up saw everything that will ever be there; any other look-up may have come too early, but what it
  found exists;
- a call commits once, except for tools under `proof: look_final`, which may still commit a second time until the
  bound has passed;
- a live key is honoured: everything sent under it is one effect. Without a live key no second call is sent while
  the first is unsettled.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from recovery.rules.decide import Action, NextAction
from recovery.rules.evidence import Evidence


class World(NamedTuple):
    """How things stand outside, though we may not know it."""

    effects: int  # whole effects that are committed: 0, 1 or 2
    part: bool  # some fields or items are committed without the rest
    under_way: bool  # a call of ours, or an echo of one, may still commit
    key_honoured: bool  # the remote system makes one effect of all calls under our key
    undone: bool  # an effect was there and has been undone


NOTHING_LANDED = {"not_sent", "transient_reject", "permanent_reject", "policy_denied"}
RECORD_FOUND = {"present", "present_final", "partial", "partial_final", "processing", "conflict"}
EVERY_WORLD = [World(*values) for values in product((0, 1, 2), *[(False, True)] * 4)]


def fitting(e: Evidence) -> Iterator[World]:
    """The worlds in which a write could have left this evidence."""
    return (w for w in EVERY_WORLD if _key_fits(e, w) and _undo_fits(e, w) and _facts_fit(e, w))


def _key_fits(e: Evidence, w: World) -> bool:
    if e.key == "live":
        return w.key_honoured
    return e.key == "expired" or not w.key_honoured


def _undo_fits(e: Evidence, w: World) -> bool:
    if e.undo == "none":
        return not w.undone
    if e.undo == "done":
        return w.undone and w.effects == 0 and not w.part and not w.under_way
    return True


def _facts_fit(e: Evidence, w: World) -> bool:
    # Once an undo has begun, it stands on facts that the reply and the look-up no longer describe.
    return e.undo != "none" or (_count_fits(e, w) and _reply_fits(e, w) and _look_fits(e, w))


def _count_fits(e: Evidence, w: World) -> bool:
    if e.verdict == "conflict":
        return True
    may_commit_again = e.proof == "look_final" and e.reconcilable and not w.key_honoured
    if w.effects == 2 or (w.effects == 1 and w.part):
        return may_commit_again
    harmless = w.effects == 0 or w.key_honoured  # what still arrives under an honoured key adds nothing
    return not w.under_way or harmless or may_commit_again


def _reply_fits(e: Evidence, w: World) -> bool:
    if e.observation in NOTHING_LANDED:
        return w.effects == 0 and not w.part and not w.under_way
    reply_is_proof = e.proof == "reply" or not e.reconcilable
    if e.observation == "ok_valid" and reply_is_proof and e.verdict not in RECORD_FOUND:
        return w.effects == 1 and not w.part
    return True


def _look_fits(e: Evidence, w: World) -> bool:
    match e.verdict:
        case "present":
            return w.effects == 1 and not w.part
        case "present_final":
            return w.effects == 1 and not w.part and (not w.under_way or w.key_honoured)
        case "absent_final":
            return w.effects == 0 and not w.part and not w.under_way
        case "partial":
            return w.part or w.effects == 1
        case "partial_final":
            return w.part and w.effects == 0 and not w.under_way
        case "conflict":
            return w.effects == 2 or w.part or w.effects == 1
    return True


def harm(e: Evidence, a: NextAction, w: World) -> str | None:
    """What goes wrong if this answer is carried out in this world: duplicate, hidden, false ok, empty undo."""
    match a.action:
        case Action.RETRY:
            return _harm_of_sending(e, w)
        case Action.COMPENSATE:
            return _harm_of_undoing(w)
        case Action.CLOSE_OK:
            return None if _one_for_ever(w) else "false ok"
        case Action.CLOSE_CANCELLED if a.reason == "cancelled_with_effects":
            return None if _one_for_ever(w) else "false ok"
        case Action.CLOSE_CANCELLED | Action.CLOSE_NO_EFFECT | Action.FATAL:
            return None if _none_for_ever(w) else "hidden"
    return None


def _harm_of_sending(e: Evidence, w: World) -> str | None:
    merges = e.key == "live" and w.key_honoured
    return None if merges or _none_for_ever(w) else "duplicate"


def _harm_of_undoing(w: World) -> str | None:
    if w.undone or (w.effects == 0 and not w.part):
        return "empty undo"
    more_to_come = w.under_way and not w.key_honoured
    return "hidden" if w.effects == 2 or more_to_come else None


def _one_for_ever(w: World) -> bool:
    return w.effects == 1 and not w.part and not w.undone and (not w.under_way or w.key_honoured)


def _none_for_ever(w: World) -> bool:
    return w.effects == 0 and not w.part and not w.under_way
