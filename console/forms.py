"""What a person's form may carry; everything that it rests on is checked again under the run's lock."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.utils.text import slugify

from recovery.work.decisions import NEEDS_REASON, Order
from runs.models import Person

OTHER = "other"
_TOO_LONG = "at most %(limit_value)d characters; this one has %(show_value)d. Nothing was saved, nothing was sent."
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

    reason_code = forms.ChoiceField()
    reason = forms.CharField(
        required=False, max_length=2000, error_messages={"max_length": f"A reason has {_TOO_LONG}"}
    )

    def __init__(self, verb: str, data: Any = None) -> None:
        super().__init__(data)
        self.verb = verb
        self.fields["reason_code"] = forms.ChoiceField(choices=list(REASONS[verb].items()))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        wordless = cleaned.get("reason_code") == OTHER and not cleaned.get("reason")
        if wordless and self.verb in NEEDS_REASON and "reason" not in self.errors:
            self.add_error("reason", "Say why in words, or choose a code that says it.")
        return cleaned

    def words(self) -> str:
        code, typed = self.cleaned_data["reason_code"], self.cleaned_data["reason"]
        label = REASONS[self.verb][code]
        if code == OTHER:
            return str(typed)
        return f"{label}: {typed}" if typed else f"{label}."


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
        return name

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
        return str(slugify(self.cleaned_data["tenant"])[:60].strip("-"))
