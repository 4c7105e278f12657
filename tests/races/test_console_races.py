"""Different buttons of one question pressed at the same moment: one is heard, the others are told who was faster."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client
from steadyhand.contract import Observation

from console import saved
from console.models import SavedView
from runs import wall
from runs.models import Circuit, Event
from tests.console.desk import address, decided, press, refusals, said, sheet
from tests.factories import Agent, Case, lose_the_reply, make_person, open_run, propose, register, report
from tests.failures.outside import REFUSED, Sends, script_sends
from tests.races.test_undo_races import booked, spent
from tests.races.together import at_once, waits_for_a_lock
from tests.recovery.stories import kinds, look, standing

pytestmark = pytest.mark.races
Later = Callable[[float], None]
SignIn = Callable[[str], Client]
ROUNDS = pytest.mark.parametrize("round_", range(2))
ASKED = Observation(kind="exception", declared="needs_input", declared_field="account")


@pytest.fixture
def admin(agent: Agent) -> SignIn:
    """Browsers of people who may do everything here."""

    def admin(name: str) -> Client:
        client = Client()
        client.force_login(
            make_person(name, agent.tenant, "admin"),
            backend="allauth.account.auth_backends.AuthenticationBackend",
        )
        return client

    return admin


def drawn(client: Client, case: Case, verb: str, **typed: str) -> Callable[[], HttpResponse]:
    """A form as it stood before anybody pressed, ready to be sent."""
    form = _marks(client, case, verb) if verb == "claim" else sheet(client, case, verb, **typed)
    return partial(client.post, address(case, verb), form)


def _marks(client: Client, case: Case, verb: str) -> dict[str, str]:
    html = client.get(address(case)).content.decode()
    form = html[html.index(f'action="{address(case, verb)}"') :]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")]))


def pressed(*clicks: Callable[[], HttpResponse]) -> list[HttpResponse]:
    """What each was answered, all pressed at once; to be late is no fault of the program."""
    answers = at_once(*clicks)
    assert [one for one in answers if isinstance(one, Exception)] == []
    return answers


def heard(case: Case, *clicks: Callable[[], HttpResponse]) -> int:
    """The number of the one that was heard; to every other a page says that nothing came of it, and why."""
    answers = pressed(*clicks)
    codes = [one.status_code for one in answers]
    assert (codes.count(303), set(codes) - {303, 403, 409}) == (1, set()), codes
    for late in answers:
        if late.status_code != 303:
            assert "Nothing was sent" in said(late) or "changed and sent nothing" in said(late)
    assert len(refusals(case)) == len(clicks) - 1
    return codes.index(303)


@ROUNDS
def test_F159_a_replay_and_a_discard(agent: Agent, admin: SignIn, later: Later, round_: int) -> None:
    case = spent(agent, later)
    first = heard(case, drawn(admin("omar"), case, "replay"), drawn(admin("ada"), case, "discard"))
    told = ["dead_letter_replayed", "dead_letter_discarded"]
    assert [kind for kind in kinds(case) if kind in told] == [told[first]]


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


def stopped(agent: Agent, sends: Sends, omar: Client) -> Case:
    """A rollback that stopped at an undo which its provider refused."""
    sends.say(Observation(kind="reply", status=201, body='{"undo_id": "un_1"}'))
    case = booked(agent)
    sends.say(REFUSED)
    press(omar, case, "compensate")
    for _ in range(2):
        look(case)
    return case


@ROUNDS
def test_I15_an_undo_ordered_anew_and_given_up(agent: Agent, admin: SignIn, sends: Sends, round_: int) -> None:
    omar = admin("omar")
    case = stopped(agent, sends, omar)
    first = heard(case, drawn(omar, case, "resume"), drawn(admin("ada"), case, "waive"))
    look(case)
    assert sends.tools.count("refund") == (2 if first == 0 else 1)
    assert [one.verb for one in decided(case, verb__in=["resume", "waive"])] == [("resume", "waive")[first]]


@ROUNDS
def test_F142_the_second_word_for_and_against(agent: Agent, admin: SignIn, sends: Sends, round_: int) -> None:
    omar = admin("omar")
    case = stopped(agent, sends, omar)
    press(omar, case, "waive")
    first = heard(case, drawn(admin("ada"), case, "approve"), drawn(admin("mia"), case, "reject"))
    assert kinds(case).count("undo_waived") == (1 if first == 0 else 0)


@ROUNDS
def test_F117_a_snooze_a_claim_and_a_cancel(agent: Agent, admin: SignIn, round_: int) -> None:
    register(agent)
    case = open_run(agent)
    lose_the_reply(case)
    omar, ada = admin("omar"), admin("ada")
    clicks = [drawn(omar, case, "snooze", minutes="30"), drawn(ada, case, "claim")]
    clicks.append(drawn(admin("mia"), case, "cancel"))
    answers = [one.status_code for one in pressed(*clicks)]
    assert set(answers) <= {303, 403, 409}
    done = [one.verb for one in decided(case)]
    assert len(done) == answers.count(303)
    # A claim rests on no fact but that the task is free; it may follow what did not take the task away.
    assert sorted(done) in (["cancel"], ["claim"], ["snooze"], ["cancel", "claim"], ["claim", "snooze"])
    assert (standing(case)[0] == "cancelled") == ("cancel" in done)


@ROUNDS
def test_F136_the_requester_a_colleague_and_a_cancel(agent: Agent, admin: SignIn, round_: int) -> None:
    cache.clear()
    register(agent)
    case = open_run(agent, scope={})
    report(case, propose(case), ASKED)
    omar = admin("omar")
    link = re.search(r'value="http://testserver(/answer/[^"]+)"', press(omar, case, "request-input").content.decode())
    assert link is not None
    answers = pressed(
        drawn(omar, case, "provide-input", value="acct_1"),
        drawn(admin("ada"), case, "cancel"),
        partial(Client().post, link[1], {"answer": "acct_2"}),
    )
    codes = [one.status_code for one in answers]
    assert codes in ([303, 409, 404], [409, 303, 404], [409, 409, 200])
    assert kinds(case).count("input_provided") == (0 if codes[1] == 303 else 1)
    assert standing(case)[0] == ("cancelled" if codes[1] == 303 else "executing")


def test_a_circuit_held_and_released_at_once_is_one_of_them(agent: Agent, admin: SignIn) -> None:
    register(agent)
    omar, ada = admin("omar"), admin("ada")
    hold = {"tenant": "north", "name": "connector:payments", "reason": "A pause."}
    omar.post("/circuits/hold/", hold)
    for _ in range(4):
        with wall.within(agent.tenant.pk):
            circuit = Circuit.objects.get()
        release = partial(ada.post, f"/circuits/{circuit.pk}/release/", {"release_reason": "It is over."})
        answers = pressed(partial(omar.post, "/circuits/hold/", hold), release)
        assert [one.status_code for one in answers] == [303, 303]
    with wall.within(agent.tenant.pk):
        moves = list(Event.objects.filter(kind__startswith="circuit").order_by("id").values_list("kind", flat=True))
        circuit = Circuit.objects.get()
    assert moves == ["circuit_held", "circuit_released"] * (len(moves) // 2) + ["circuit_held"] * (len(moves) % 2)
    assert (circuit.state, circuit.version) == ("held_open" if len(moves) % 2 else "half_open", len(moves))


def test_of_two_who_hold_or_release_the_same_circuit_one_is_heard(agent: Agent, admin: SignIn) -> None:
    register(agent)
    omar, ada = admin("omar"), admin("ada")
    hold = {"tenant": "north", "name": "connector:payments", "reason": "A pause."}
    omar.post("/circuits/hold/", hold)
    with wall.within(agent.tenant.pk):
        path = f"/circuits/{Circuit.objects.get().pk}/release/"
    releases = [partial(one.post, path, {"release_reason": "It is over."}) for one in (omar, ada)]
    assert [one.status_code for one in _met_at_the_circuit(agent, *releases)] == [303, 303]
    holds = [partial(one.post, "/circuits/hold/", hold) for one in (omar, ada)]
    late, first = sorted(_met_at_the_circuit(agent, *holds), key=lambda one: one.status_code, reverse=True)
    assert (late.status_code, first.status_code) == (422, 303)
    assert "holds it open already, since" in said(late)
    with wall.within(agent.tenant.pk):
        moves = list(Event.objects.filter(kind__startswith="circuit").order_by("id").values_list("kind", flat=True))
    assert moves == ["circuit_held", "circuit_released", "circuit_held"]


def _met_at_the_circuit(agent: Agent, *clicks: Callable[[], HttpResponse]) -> list[HttpResponse]:
    """Pressed while somebody else is at the circuit: all come to its row before any of them has changed it."""
    taken = threading.Event()

    def keep() -> None:
        with wall.within(agent.tenant.pk):
            Circuit.objects.select_for_update().get()
            taken.set()
            assert waits_for_a_lock(len(clicks))

    def after(click: Callable[[], HttpResponse]) -> HttpResponse:
        assert taken.wait(20)
        return click()

    return pressed(keep, *[partial(after, click) for click in clicks])[1:]


@ROUNDS
def test_two_views_of_one_name_saved_at_once_are_one(agent: Agent, admin: SignIn, round_: int) -> None:
    form = {"name": "On call", "where": "team:north", "query": "view=unknown"}
    clients = [admin(name) for name in ("omar", "ada", "mia")]
    codes = [one.status_code for one in at_once(*(partial(client.post, "/views/", form) for client in clients))]
    assert sorted(codes) == [303, 422, 422]
    with wall.within(agent.tenant.pk):
        assert SavedView.objects.count() == 1


def test_the_last_place_for_a_view_is_taken_once(
    agent: Agent, admin: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have counted before either saves, unless one has to wait for the other."""
    counted, room = threading.Barrier(2), saved._room

    def slowly(wish: saved.Wish) -> None:
        room(wish)
        with suppress(threading.BrokenBarrierError):
            counted.wait(timeout=2)

    monkeypatch.setattr(saved, "MOST_TEAM", 1)
    monkeypatch.setattr(saved, "_room", slowly)
    forms = [{"name": name, "where": "team:north", "query": ""} for name in ("one", "two")]
    clients = [admin(name) for name in ("omar", "ada")]
    jobs = [partial(client.post, "/views/", form) for client, form in zip(clients, forms, strict=True)]
    assert sorted(one.status_code for one in at_once(*jobs)) == [303, 422]
    with wall.within(agent.tenant.pk):
        assert SavedView.objects.count() == 1
