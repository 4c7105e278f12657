"""Callbacks: what a provider tells by itself, in whatever order and as often as it likes."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from steadyhand.contract import Cancel

from recovery import callback_secrets, callbacks, intake
from recovery.callbacks import NotVerified
from recovery.models import InboxMessage
from recovery.rules import signatures
from recovery.rules.signatures import Signed
from runs import wall
from runs.models import Event, Tenant
from runs.querysets import read_clock
from tests.factories import (
    RESULTS,
    Case,
    Permit,
    advance_clock,
    finish,
    make_tenant,
    propose,
    refuse,
    reply,
    report,
    succeed,
    timed_out,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, effects, evidence, kinds, open_tasks, standing, tasks, tick, tries

pytestmark = pytest.mark.django_db

SOURCE = "payments"
CALLBACK: dict[str, Any] = {
    "source": SOURCE,
    "reference": "metadata.action_id",
    "identity": "credit_id",
    "state": "state",
    "succeeded": ["succeeded"],
    "failed": ["failed"],
    "order": ["created", "processing", "succeeded|failed"],
}
ACCEPTED = {"credit_id": "cr_1", "state": "processing"}


def secret_of(tenant: Tenant, source: str = SOURCE) -> bytes:
    with wall.within(tenant.pk):
        return signatures.read(callback_secrets.create(tenant, source))


@pytest.fixture
def secret(tenant: Tenant) -> bytes:
    return secret_of(tenant)


@pytest.fixture
def awaited(opened: Opener) -> Case:
    """A credit that the provider accepts with a 202 and completes by a callback."""
    case = opened(callback=CALLBACK, completes_by="callback", async_statuses=[202], reconcile=None)
    turn(case)
    return case


@pytest.fixture
def plain(opened: Opener) -> Case:
    """A credit whose own reply ends it, and about which the provider also sends messages."""
    case = opened(callback=CALLBACK)
    turn(case)
    return case


def send(
    case: Case,
    secret: bytes,
    *,
    message: str = "evt_1",
    state: str = "succeeded",
    at: datetime | None = None,
    tenant: str = "",
    source: str = SOURCE,
    **payload: Any,
) -> str:
    """One signed message; it names the call by the provider's id unless the payload says otherwise."""
    body = json.dumps({"credit_id": "cr_1", "state": state, **payload}).encode()
    stamp = str(int((at or read_clock()).timestamp()))
    signed = Signed(message, stamp, signatures.sign(secret, message, stamp, body))
    return callbacks.receive(tenant or case.tenant.slug, source, signed, body, request_id="test")


def by_reference(permit: Permit) -> dict[str, Any]:
    return {"metadata": {"action_id": permit.action_id}}


def accept(case: Case) -> Permit:
    permit = propose(case)
    report(case, permit, reply(ACCEPTED, status=202))
    return permit


def inbox(case: Case) -> list[tuple[str, str]]:
    with wall.within(case.tenant.pk):
        return list(InboxMessage.objects.order_by("id").values_list("message_id", "state"))


# --- what completes a call ------------------------------------------------------------------------------------


def test_an_accepted_call_is_completed_by_its_callback(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    assert standing(awaited) == ("verifying", "retryable", "async_pending")
    assert send(awaited, secret) == "used"
    action = awaited.action()
    assert (action.state, action.reason_code, action.external_id) == ("succeeded", "completed", "cr_1")
    assert effects(awaited) == ["apply_credit"]
    assert open_tasks(awaited) == []
    assert standing(awaited)[0] == "executing"


def test_the_callback_is_the_result_where_the_contract_promises_it_so(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    send(awaited, secret, amount_minor=12_000)
    assert propose(awaited).result == {"credit_id": "cr_1", "state": "succeeded", "amount_minor": 12_000}


def test_F074_a_message_that_comes_again_changes_nothing_and_is_counted(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    assert [send(awaited, secret) for _ in range(3)] == ["used", "duplicate", "duplicate"]
    advance_clock(minutes=50)
    assert send(awaited, secret) == "duplicate"
    assert inbox(awaited) == [("evt_1", "used")]
    assert kinds(awaited).count("callback_used") == 1
    assert kinds(awaited).count("callback_duplicate") == 3
    assert effects(awaited) == ["apply_credit"]


def test_a_flood_of_repeats_does_not_fill_the_history(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    for _ in range(callbacks.REPEATS_KEPT + 5):
        send(awaited, secret)
    assert kinds(awaited).count("callback_duplicate") == callbacks.REPEATS_KEPT


def test_a_job_that_failed_is_refused_for_good_and_nothing_is_sent_again(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    assert send(awaited, secret, state="failed") == "used"
    action = awaited.action()
    assert (action.state, action.reason_code) == ("refused_permanent", "remote_operation_failed")
    assert effects(awaited) == []
    assert propose(awaited).answer == "deny"
    assert (finish(awaited).outcome, awaited.run.reason_code) == ("fatal", "remote_operation_failed")


def test_a_job_that_a_person_already_looks_after_may_still_fail(awaited: Case, secret: bytes) -> None:
    permit = propose(awaited)
    report(awaited, permit, timed_out())
    assert awaited.action().state == "held"
    send(awaited, secret, state="failed", **by_reference(permit))
    assert awaited.action().reason_code == "remote_operation_failed"
    assert open_tasks(awaited) == []


def test_a_lost_reply_is_settled_by_the_callback_that_names_our_own_id(
    plain: Case, secret: bytes, looks: Looks
) -> None:
    permit = propose(plain)
    report(plain, permit, timed_out())
    assert open_tasks(plain) == [("reconcile_write", "external_outcome_unknown")]
    assert send(plain, secret, **by_reference(permit)) == "used"
    action = plain.action()
    assert (action.state, action.reason_code, action.external_id) == ("succeeded", "completed_late_result", "cr_1")
    assert open_tasks(plain) == []
    assert looks.asked == []


def test_a_callback_may_name_the_key_that_the_provider_got(opened: Opener, secret: bytes) -> None:
    key = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400}
    case = opened(callback=CALLBACK, idempotency=key)
    permit = propose(case)
    report(case, permit, timed_out())
    send(case, secret, metadata={"action_id": permit.idempotency_key})
    assert case.action().state == "succeeded"


# --- order ----------------------------------------------------------------------------------------------------


def test_an_earlier_state_that_comes_later_is_kept_and_moves_nothing(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    assert send(awaited, secret, message="evt_2", state="succeeded") == "used"
    assert send(awaited, secret, message="evt_1", state="processing") == "ignored"
    assert awaited.action().state == "succeeded"
    assert evidence(awaited)[-1] == "none"
    assert open_tasks(awaited) == []


def test_progress_is_no_end(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    assert send(awaited, secret, message="evt_0", state="created") == "used"
    assert send(awaited, secret, message="evt_1", state="processing") == "used"
    assert standing(awaited) == ("verifying", "retryable", "async_pending")
    send(awaited, secret, message="evt_2")
    assert awaited.action().state == "succeeded"


def test_a_state_that_the_contract_does_not_know_moves_nothing(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    assert send(awaited, secret, state="reviewed_by_partner") == "ignored"
    assert awaited.action().state == "processing"


# --- before our own reply -------------------------------------------------------------------------------------


def test_F073_a_callback_before_our_own_reply_counts_and_the_reply_adds_nothing(plain: Case, secret: bytes) -> None:
    permit = propose(plain)
    assert send(plain, secret, **by_reference(permit)) == "used"
    assert plain.action().state == "permitted"
    told = report(plain, permit, reply(RESULTS["apply_credit"]))
    assert (told.answer, told.result["credit_id"]) == ("result", "cr_1")
    assert effects(plain) == ["apply_credit"]
    assert kinds(plain).count("succeeded") == 1


def test_F073_a_callback_before_a_reply_that_never_comes_settles_the_call_at_its_lease_end(
    plain: Case, secret: bytes, looks: Looks
) -> None:
    permit = propose(plain)
    send(plain, secret, **by_reference(permit))
    advance_clock(seconds=60)
    tick()
    assert plain.action().state == "succeeded"
    assert looks.asked == []


def test_F073_a_callback_that_only_knows_the_providers_id_waits_for_the_reply_that_brings_it(
    awaited: Case, secret: bytes
) -> None:
    permit = propose(awaited)
    assert send(awaited, secret) == "waiting"
    assert awaited.action().state == "permitted"
    report(awaited, permit, reply(ACCEPTED, status=202))
    assert (awaited.action().state, awaited.action().reason_code) == ("succeeded", "completed")
    assert inbox(awaited) == [("evt_1", "used")]


def test_F073_a_waiting_failure_contradicts_the_reply_that_comes_after_it(plain: Case, secret: bytes) -> None:
    permit = propose(plain)
    assert send(plain, secret, state="failed") == "waiting"
    report(plain, permit, reply(RESULTS["apply_credit"]), "apply_credit")
    assert plain.action().state == "succeeded"
    assert open_tasks(plain) == [("decide_next", "conflicting_evidence")]


def test_a_message_about_somebody_elses_payment_waits_and_moves_nothing(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    assert send(awaited, secret, credit_id="cr_of_another_shop") == "waiting"
    assert awaited.action().state == "processing"


def test_a_message_that_names_nothing_is_kept_and_ignored(awaited: Case, secret: bytes) -> None:
    assert send(awaited, secret, credit_id=None) == "ignored"
    assert inbox(awaited) == [("evt_1", "ignored")]


# --- after the end --------------------------------------------------------------------------------------------


def test_F072_a_callback_that_agrees_with_a_closed_call_changes_nothing(plain: Case, secret: bytes) -> None:
    succeed(plain)
    assert send(plain, secret) == "used"
    assert open_tasks(plain) == []
    assert effects(plain) == ["apply_credit"]


def test_F072_a_callback_that_contradicts_a_closed_call_asks_a_person_and_the_outcome_stays(
    plain: Case, secret: bytes
) -> None:
    for tool in ("load_invoice", "apply_credit", "draft_reply"):
        succeed(plain, tool)
    finish(plain)
    assert standing(plain) == ("completed", "ok", "completed")
    assert send(plain, secret, state="failed") == "used"
    assert standing(plain) == ("completed", "ok", "completed")
    assert open_tasks(plain) == [("decide_next", "conflicting_evidence")]


def test_F072_a_success_after_a_refusal_asks_a_person(plain: Case, secret: bytes) -> None:
    permit = propose(plain)
    report(plain, permit, reply({"error": {"code": "invoice_closed"}}, status=422))
    send(plain, secret, **by_reference(permit))
    assert plain.action().state == "refused_permanent"
    assert open_tasks(plain) == [("decide_next", "conflicting_evidence")]


def test_F072_a_success_after_a_reported_failure_of_the_same_job_asks_a_person(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    send(awaited, secret, message="evt_1", state="failed")
    send(awaited, secret, message="evt_2", state="succeeded")
    assert awaited.action().state == "refused_permanent"
    assert open_tasks(awaited) == [("decide_next", "conflicting_evidence")]


def test_F072_a_second_effect_of_one_call_is_a_duplicate(plain: Case, secret: bytes) -> None:
    permit = propose(plain)
    report(plain, permit, reply(RESULTS["apply_credit"]), "apply_credit")
    send(plain, secret, credit_id="cr_2", **by_reference(permit))
    assert open_tasks(plain) == [("duplicate_effect", "duplicate_effect")]


def test_F079_a_callback_after_a_cancel_shows_the_effect_on_the_cancelled_run(plain: Case, secret: bytes) -> None:
    permit = propose(plain)
    intake.cancel(plain.agent.who, plain.run_id, Cancel(reason="asked to"), request_id="test")
    report(plain, permit, timed_out())
    assert standing(plain) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    advance_clock(hours=2)
    assert send(plain, secret, **by_reference(permit)) == "used"
    assert standing(plain) == ("cancelled", "cancelled", "cancelled_with_effects")
    assert effects(plain) == ["apply_credit"]
    assert [(task.kind, task.state) for task in tasks(plain)] == [("effect_after_cancel", "open")]


def test_F079_a_failure_after_a_cancel_closes_the_question(plain: Case, secret: bytes) -> None:
    permit = propose(plain)
    intake.cancel(plain.agent.who, plain.run_id, Cancel(reason="asked to"), request_id="test")
    report(plain, permit, timed_out())
    send(plain, secret, state="failed", **by_reference(permit))
    assert standing(plain) == ("cancelled", "cancelled", "cancelled_by_user")
    assert open_tasks(plain) == []


# --- who may tell ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minutes", [-6, 6])
def test_F075_a_message_outside_its_five_minutes_is_refused_and_noted(
    minutes: int, awaited: Case, secret: bytes
) -> None:
    accept(awaited)
    with pytest.raises(NotVerified):
        send(awaited, secret, at=read_clock() + timedelta(minutes=minutes))
    assert awaited.action().state == "processing"
    assert inbox(awaited) == []
    with wall.within(awaited.tenant.pk):
        assert Event.objects.filter(kind="callback_refused", run=None).count() == 1


def test_F075_replaying_an_old_message_for_hours_does_not_fill_the_audit(awaited: Case, secret: bytes) -> None:
    for _ in range(callbacks.REFUSALS_KEPT + 10):
        with pytest.raises(NotVerified):
            send(awaited, secret, at=datetime(2026, 1, 1, tzinfo=UTC))
    with wall.within(awaited.tenant.pk):
        assert Event.objects.filter(kind="callback_refused").count() == callbacks.REFUSALS_KEPT


def test_F076_another_tenants_secret_opens_nothing(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    theirs = secret_of(make_tenant("charlie"))
    with pytest.raises(NotVerified):
        send(awaited, theirs)
    assert inbox(awaited) == []


def test_F076_a_message_of_another_tenant_that_names_our_call_finds_nothing(awaited: Case, secret: bytes) -> None:
    permit = accept(awaited)
    charlie = make_tenant("charlie")
    assert send(awaited, secret_of(charlie), tenant="charlie", **by_reference(permit)) == "ignored"
    assert awaited.action().state == "processing"


def test_F076_one_sources_secret_is_not_anothers(awaited: Case, secret: bytes, tenant: Tenant) -> None:
    other = secret_of(tenant, "mail")
    with pytest.raises(NotVerified):
        send(awaited, other)
    assert send(awaited, other, source="mail", credit_id=None) == "ignored"


def test_F078_while_a_secret_is_rotated_both_hold_and_then_only_the_new_one(
    awaited: Case, secret: bytes, tenant: Tenant
) -> None:
    with wall.within(tenant.pk):
        new = signatures.read(callback_secrets.rotate(tenant, SOURCE, overlap=timedelta(minutes=30)))
    assert send(awaited, secret, message="evt_1") == "waiting"
    assert send(awaited, new, message="evt_2") == "waiting"
    advance_clock(minutes=30, seconds=1)
    with pytest.raises(NotVerified):
        send(awaited, secret, message="evt_3")
    assert send(awaited, new, message="evt_4") == "waiting"


def test_what_a_message_holds_is_redacted_before_it_is_kept(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    send(awaited, secret, api_key="canary-7f3e1d", card="4111 1111 1111 1111")
    with wall.within(awaited.tenant.pk):
        kept = [
            *InboxMessage.objects.values_list("raw", flat=True),
            *awaited.action().evidence.values_list("raw", flat=True),
        ]
    assert "canary-7f3e1d" not in json.dumps(kept)
    assert "4111" not in json.dumps(kept)


def test_tries_are_untouched_by_what_the_provider_tells(awaited: Case, secret: bytes) -> None:
    accept(awaited)
    send(awaited, secret)
    assert [(one.number, one.observed) for one in tries(awaited)] == [(1, "unknown")]
    refuse(awaited, "draft_reply")
