"""What of the queue an address asks for beside its tab: workflow, reason, tool, team, tag, priority, amount."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Q

from console import looks
from console.pages.common import Flash
from console.templatetags.look import DECIMALS

WORDS = {"workflow": "workflow_name", "reason": "reason_code", "tool": "tool", "team": "owner_team"}
"""The filters that take a whole word, and the column of each; every one has an index over the open tasks."""
NAMES = (*WORDS, "tag", "priority", "above", "currency")
LABELS = {"workflow": "Workflow", "reason": "Reason", "tool": "Tool", "team": "Team"}
LONGEST = 120
PRIORITIES = ("1", "2", "3", "4")
AMOUNT = re.compile(r"\d{1,12}(\.\d{1,3})?")
CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True)
class Narrow:
    """The filters of one address; `wrong` says of each that cannot be used what would be right, and it is not."""

    workflow: str = ""
    reason: str = ""
    tool: str = ""
    team: str = ""
    tag: str = ""
    priority: str = ""
    above: str = ""
    currency: str = ""
    wrong: tuple[str, ...] = ()

    @classmethod
    def read(cls, asked: Mapping[str, str]) -> Narrow:
        given = {name: asked.get(name, "").replace("\0", "").strip() for name in NAMES}
        wrong = [said for said in (_wrong(name, value) for name, value in given.items()) if said]
        if bool(given["above"]) != bool(given["currency"]):
            wrong.append("`above` and `currency` go together: above=250.00 and currency=EUR")
        used = {name: "" if _wrong(name, value) else value for name, value in given.items()}
        if not (used["above"] and used["currency"]):
            used["above"] = used["currency"] = ""
        return cls(**used, wrong=tuple(wrong))

    @property
    def given(self) -> dict[str, str]:
        """The filters that hold, as parameters of an address."""
        return {name: value for name in NAMES if (value := getattr(self, name))}

    @property
    def of_totals(self) -> bool:
        """Whether the filters are about columns that the totals of tasks have too (recovery.totals)."""
        return not (self.above or self.tag)

    def q(self) -> Q:
        found = Q(**{column: getattr(self, name) for name, column in WORDS.items() if getattr(self, name)})
        if self.tag:
            found &= Q(tags__contains=[self.tag])
        if self.priority:
            found &= Q(consequence__gte=int(self.priority))
        if self.above:
            found &= Q(currency=self.currency, value_minor__gt=_minor(self.above, self.currency))
        return found

    def tokens(self) -> list[tuple[str, tuple[str, ...]]]:
        """ "Field: value", with the names of the parameters that it stands for."""
        told: list[tuple[str, tuple[str, ...]]] = [
            (f"{LABELS[name]}: {getattr(self, name)}", (name,)) for name in WORDS if getattr(self, name)
        ]
        if self.tag:
            told.append((f"Tag: {self.tag}", ("tag",)))
        if self.priority:
            told.append((f"Priority: {self.priority} or more", ("priority",)))
        if self.above:
            told.append((f"Amount: above {self.above} {self.currency}", ("above", "currency")))
        return told

    def notices(self) -> list[Flash]:
        if not self.wrong:
            return []
        text = f"{'; '.join(self.wrong)}. The list is not narrowed by it."
        return [Flash(looks.NOTICE["moved"], "A filter of this address cannot be used.", text)]


EVERYTHING = Narrow()


def _wrong(name: str, value: str) -> str:
    """What would be right instead; empty for a value that can be used, and for none."""
    if not value:
        return ""
    if name in WORDS or name == "tag":
        return f"`{name}` has at most {LONGEST} characters" if len(value) > LONGEST else ""
    if name == "priority":
        return "" if value in PRIORITIES else f"`priority` is one of {', '.join(PRIORITIES)}"
    if name == "above":
        return "" if AMOUNT.fullmatch(value) else "`above` is an amount like 250.00"
    return "" if CURRENCY.fullmatch(value) else "`currency` is three capitals like EUR"


def _minor(amount: str, currency: str) -> int:
    return int(Decimal(amount).scaleb(DECIMALS.get(currency, 2)))
