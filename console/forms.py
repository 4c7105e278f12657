"""What a person's form may carry; everything that it rests on is checked again under the run's lock."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.utils.text import slugify

from recovery.rules.questions import LONGEST_ANSWER
from recovery.work.bulk import Pace
from recovery.work.decisions import NEEDS_REASON, Order
from runs import wall
from runs.models import Person
from runs.querysets import read_clock

OTHER = "other"
OUTCOMES = {"": "Choose one", "present": "It happened", "absent": "It did not happen"}
SLEEPS = {"30": "30 minutes", "60": "1 hour", "240": "4 hours", "1440": "1 day", "4320": "3 days", "10080": "1 week"}
"""Minutes that a task may be put off for."""
_TOO_LONG = "at most %(limit_value)d characters; this one has %(show_value)d. Nothing was saved, nothing was sent."
_WHOLE = {"invalid": "Write a whole number.", "min_value": "Write at least %(limit_value)s."}
REASONS: dict[str, dict[str, str]] = {
    "reconcile": {
        "confirm_state": "Confirm the provider's state",
        "customer_waits": "The customer is waiting",
        "after_incident": "After an incident",
        OTHER: "Other, in words below",
    },
    "retry": {
        "proven_absent": "Nothing happened, as proven",
        "outage_over": "The outage is over",
        OTHER: "Other, in words below",
    },
    "resume": {
        "settled": "Every call is settled",
        "cause_removed": "The cause was removed",
        OTHER: "Other, in words below",
    },
    "approve": {
        "checked": "Checked against the request",
        "agreed": "Agreed with the requester",
        OTHER: "Other, in words below",
    },
    "reject": {
        "not_allowed": "This is not allowed",
        "wrong_amount": "The amount is wrong",
        "wrong_target": "The target is wrong",
        "not_confirmed": "It could not be confirmed",
        OTHER: "Other, in words below",
    },
    "replay": {
        "outage_over": "The outage is over",
        "cause_removed": "The cause was removed",
        OTHER: "Other, in words below",
    },
    "discard": {
        "handled_elsewhere": "It was handled elsewhere",
        "not_needed": "It is no longer needed",
        OTHER: "Other, in words below",
    },
    "top_up": {
        "nearly_done": "The work is nearly done",
        "harder_case": "The case is harder than usual",
        OTHER: "Other, in words below",
    },
    "attest": {
        "provider_said": "The provider confirmed it",
        "seen_there": "Seen in the provider's own records",
        OTHER: "Other, in words below",
    },
    "compensate": {
        "wrong_request": "The request was wrong",
        "withdrawn": "The request was withdrawn",
        OTHER: "Other, in words below",
    },
    "request_input": {
        "wrong_value": "The value was not accepted",
        "missing_value": "A value is missing",
        OTHER: "Other, in words below",
    },
    "provide_input": {
        "told_by_requester": "The requester said so",
        "in_the_case": "It stands in the customer's case",
        OTHER: "Other, in words below",
    },
    "assign": {
        "knows_more": "Somebody knows more about it",
        "end_of_shift": "The end of a shift",
        "not_mine": "It is another's work",
        OTHER: "Other, in words below",
    },
    "decline": {
        "no_time": "No time for it now",
        "knows_less": "Somebody else knows more about it",
        OTHER: "Other, in words below",
    },
    "snooze": {
        "answer_expected": "An answer is expected by then",
        "after_incident": "After an incident",
        "customer_agreed": "Agreed with the customer",
        OTHER: "Other, in words below",
    },
    "reopen": {
        "not_settled": "It was not settled",
        "wrong_decision": "What was decided turned out wrong",
        OTHER: "Other, in words below",
    },
    "waive": {
        "provider_keeps_it": "The provider does not give it back",
        "settled_elsewhere": "It was settled elsewhere",
        "agreed_with_customer": "Agreed with the customer",
        OTHER: "Other, in words below",
    },
    "cancel": {
        "withdrawn": "The request was withdrawn",
        "handled_elsewhere": "It was handled elsewhere",
        "wrong_request": "The request was wrong",
        OTHER: "Other, in words below",
    },
}


def new_key() -> str:
    """The one-time key of one rendering of a form: a second click carries the same and gets the first result."""
    return uuid.uuid4().hex


class MarkForm(forms.Form):
    """The marks of the page that the form stood on. They are never typed: a wrong one is a broken form."""

    evidence_hash = forms.CharField(required=False, max_length=160)
    version = forms.IntegerField(min_value=0, max_value=2**31 - 1)
    key = forms.RegexField(r"\A[0-9a-f]{32}\Z")

    MARKS = ("evidence_hash", "version", "key")

    def broken(self) -> bool:
        """Whether a mark is missing or was changed on the way."""
        return any(name in self.errors for name in self.MARKS)

    def order(self, task_id: uuid.UUID, by: Person, request_id: str) -> Order:
        """What recovery is asked to do; call it on a valid form."""
        return Order(
            task_id=task_id,
            by=by,
            reason=self.words(),
            evidence_hash=self.cleaned_data["evidence_hash"],
            version=self.cleaned_data["version"],
            key=self.cleaned_data["key"],
            request_id=request_id,
        )

    def words(self) -> str:
        return ""


class CommentForm(MarkForm):
    text = forms.CharField(
        max_length=4000,
        error_messages={"required": "A comment needs words.", "max_length": f"A comment has {_TOO_LONG}"},
    )

    def words(self) -> str:
        return str(self.cleaned_data["text"])


class VerbForm(MarkForm):
    """A verb that acts: a reason code, and words where the code says too little."""

    codes = REASONS
    reason_code = forms.ChoiceField()
    reason = forms.CharField(
        required=False, max_length=2000, error_messages={"max_length": f"A reason has {_TOO_LONG}"}
    )

    def __init__(self, verb: str, data: Any = None) -> None:
        super().__init__(data)
        self.verb = verb
        self.fields["reason_code"] = forms.ChoiceField(choices=list(self.codes[verb].items()))
        self.fields.update(_further(verb))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        wordless = cleaned.get("reason_code") == OTHER and not cleaned.get("reason")
        if wordless and self.verb in NEEDS_REASON and "reason" not in self.errors:
            self.add_error("reason", "Say why in words, or choose a code that says it.")
        return cleaned

    def words(self) -> str:
        code, typed = self.cleaned_data["reason_code"], self.cleaned_data["reason"]
        label = self.codes[self.verb][code]
        if code == OTHER:
            return str(typed)
        return f"{label}: {typed}" if typed else f"{label}."

    def order(self, task_id: uuid.UUID, by: Person, request_id: str) -> Order:
        further = {name: self.cleaned_data[name] for name in _further(self.verb)}
        if "minutes" in further:
            further["until"] = read_clock() + timedelta(minutes=int(further.pop("minutes")))
        return replace(super().order(task_id, by, request_id), **further)


def _further(verb: str) -> dict[str, forms.Field]:
    """What a verb asks for besides a reason, by the name that its order has for it."""
    if verb == "reject":
        return {"code": forms.CharField(required=False, max_length=80)}
    if verb == "top_up":
        whole = {"required": "Say how much to add.", "invalid": "Write a whole number."}
        return {"amount": forms.IntegerField(min_value=1, max_value=2**53, error_messages=whole)}
    if verb == "attest":
        said = {"required": "Say whether it happened or not.", "invalid_choice": "Say whether it happened or not."}
        proof = {"required": "A word without the provider's reference proves nothing."}
        return {
            "outcome": forms.ChoiceField(choices=list(OUTCOMES.items()), error_messages=said),
            "reference": forms.CharField(max_length=200, error_messages=proof),
        }
    if verb == "provide_input":
        said = {"required": "Write an answer.", "max_length": f"An answer has {_TOO_LONG}"}
        return {"value": forms.CharField(max_length=LONGEST_ANSWER, error_messages=said)}
    if verb == "assign":
        return {"to": forms.CharField(required=False, max_length=36)}
    if verb == "snooze":
        said = {"required": "Say for how long.", "invalid_choice": "Choose one of the times."}
        return {"minutes": forms.ChoiceField(choices=list(SLEEPS.items()), error_messages=said)}
    return {}


class BulkStartForm(VerbForm):
    """How a bulk operation is to run: why, how many go first, how many a minute, and when it stops by itself."""

    codes = {**REASONS, **{verb: {OTHER: "In words below"} for verb in ("claim", "release", "comment")}}
    canary = forms.IntegerField(min_value=0, error_messages={"required": "Write 0 for none.", **_WHOLE})
    rate = forms.IntegerField(min_value=1, error_messages={"required": "Say how many a minute.", **_WHOLE})
    stop_after = forms.IntegerField(min_value=1, error_messages={"required": "Say after how many.", **_WHOLE})

    def pace(self) -> Pace:
        """What recovery is asked to do; call it on a valid form."""
        told = {name: self.cleaned_data[name] for name in _further(self.verb)}
        if "minutes" in told:
            until = read_clock() + timedelta(minutes=int(told.pop("minutes")))
            told["until"] = until.isoformat()
        numbers = {name: self.cleaned_data[name] for name in ("canary", "rate", "stop_after")}
        return Pace(reason=self.words(), more=told, **numbers)


class FreezeForm(forms.Form):
    """A list that is to be frozen; what it holds stands in the address, and is read again."""

    key = forms.RegexField(r"\A[0-9a-f]{32}\Z")
    versions = forms.CharField(required=False, max_length=40)


class StopForm(forms.Form):
    """A stop switch as it is set; which scopes and names exist is recovery's to say."""

    tenant = forms.CharField(max_length=60, error_messages={"required": "Choose a tenant."})
    scope = forms.CharField(max_length=10, error_messages={"required": "Choose what is stopped."})
    name = forms.CharField(required=False, max_length=120)
    mode = forms.CharField(max_length=10, error_messages={"required": "Choose how it stops."})
    until = forms.DateTimeField(
        required=False,
        input_formats=["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"],
        error_messages={"invalid": "Write an end as 2026-03-14 18:30, in UTC, or leave it empty."},
    )
    reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Say why, in a few words.", "max_length": f"A reason has {_TOO_LONG}"},
    )


class LiftForm(forms.Form):
    """Why a stop switch is lifted."""

    lift_reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Say why, in a few words.", "max_length": f"A reason has {_TOO_LONG}"},
    )


class AnswerForm(forms.Form):
    """What a requester answers; whether it fits is recovery's to say."""

    answer = forms.CharField(
        required=False, max_length=LONGEST_ANSWER, error_messages={"max_length": "That is too long."}
    )


class HoldForm(forms.Form):
    """A circuit that is to be held open; which there are is recovery's to say."""

    tenant = forms.CharField(max_length=60, error_messages={"required": "Choose a tenant."})
    name = forms.CharField(max_length=200, error_messages={"required": "Name the circuit."})
    reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Say why, in a few words.", "max_length": f"A reason has {_TOO_LONG}"},
    )


class ReleaseForm(forms.Form):
    """Why a circuit is released."""

    release_reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Say why, in a few words.", "max_length": f"A reason has {_TOO_LONG}"},
    )


class FirstAdminForm(forms.Form):
    """The first person and the first tenant of an empty installation."""

    tenant = forms.CharField(
        label="Tenant", max_length=120, help_text="The company or team whose runs these are.", strip=True
    )
    name = forms.CharField(label="Your name", max_length=120)
    email = forms.EmailField(
        label="E-mail", max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "username"})
    )
    password = forms.CharField(
        label="Password",
        max_length=1000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 12 characters; long beats complicated.",
    )

    def clean_tenant(self) -> str:
        name: str = self.cleaned_data["tenant"]
        if not slugify(name):
            raise forms.ValidationError("Use at least one letter or digit.")
        if wall.tenant_of_slug(slug_of(name)) is not None:
            raise forms.ValidationError("There is a tenant of that name already: choose another.")
        return name

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if Person.objects.filter(email__iexact=email).exists():
            raise forms.ValidationError(
                "Somebody has this address already: manage.py add_person makes them an admin."
            )
        return email

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if "password" in cleaned:
            person = Person(email=cleaned.get("email", ""), name=cleaned.get("name", ""))
            try:
                password_validation.validate_password(cleaned["password"], person)
            except forms.ValidationError as wrong:
                self.add_error("password", wrong)
        return cleaned

    @property
    def slug(self) -> str:
        return slug_of(self.cleaned_data["tenant"])


def slug_of(tenant: str) -> str:
    """A tenant's short name."""
    return str(slugify(tenant)[:60].strip("-"))
