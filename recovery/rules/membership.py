"""May this person give that one these roles, and does a second admin have to agree? Pure: facts come as values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A wish to change somebody's roles in one tenant, and what bears on it.

    `other_admins` are the active admins besides whoever asks and whoever it is about; `admins_left` those who would
    be left if it were carried out. `gained` and `lost` are abilities.
    """

    may: bool
    about_oneself: bool
    is_active: bool
    known: bool
    differs: bool
    gained: Collection[str]
    lost: Collection[str]
    other_admins: int
    admins_left: int


def refusal(change: Change) -> str:
    """Why it is refused, in one sentence; empty if it is not (SECURITY 2)."""
    if not change.may:
        return "your role does not include this."
    if change.about_oneself:
        return "nobody changes their own roles: ask another admin."
    if not change.known:
        return "there is no such role."
    if not change.differs:
        return "these are the roles that this person has already."
    if change.gained and not change.is_active:
        return "this person was deactivated, and may be given nothing."
    if change.admins_left == 0:
        return "this is the last admin: nobody could give a role to anybody afterwards."
    return ""


def needs_second(change: Change) -> bool:
    """Whoever gains an ability gains it by the word of two admins, where there are two who may speak."""
    return bool(change.gained) and change.other_admins > 0
