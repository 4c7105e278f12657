"""The provider that the simulator plays against: what it does to a request is what its ledger says."""

import random
from dataclasses import replace

from tests.simulation.fates import GOOD, Fate, Script, Weather, late, lost, refusal
from tests.simulation.remote import Call, Outage, Remote

CREDIT = Call("credit", "act_1", key="k1", arguments={"amount": 120})


def remote(*fates: Fate, **more: object) -> Remote:
    script = Script()
    script.tell("credit", *fates)
    return Remote(random.Random(1), script, **more)


def test_a_good_request_is_one_effect_and_one_reply() -> None:
    shop = remote(GOOD)
    sent = shop.send(CREDIT, 10.0)
    assert shop.reply(sent, 10.05) is None
    reply = shop.reply(sent, 11.0)
    assert reply is not None
    assert (reply.status, reply.effect) == (200, shop.ledger[0].id)
    assert [one.at for one in shop.effects("act_1")] == [10.07]


def test_a_lost_reply_leaves_an_effect_that_a_look_finds() -> None:
    shop = remote(lost())
    sent = shop.send(CREDIT, 0.0)
    assert shop.reply(sent, 1000.0) is None
    assert [one.id for one in shop.look("act_1", 1000.0) or []] == [shop.ledger[0].id]


def test_a_late_commit_is_not_there_before_its_time() -> None:
    shop = remote(late(40))
    shop.send(CREDIT, 0.0)
    assert shop.look("act_1", 39.0) == []
    assert len(shop.look("act_1", 41.0) or []) == 1


def test_what_has_not_become_visible_is_in_the_ledger_and_in_no_look() -> None:
    shop = remote(replace(GOOD, lag=8.0))
    shop.send(CREDIT, 0.0)
    assert shop.look("act_1", 5.0) == []
    assert len(shop.effects("act_1")) == 1
    assert len(shop.look("act_1", 9.0) or []) == 1


def test_two_sends_are_two_effects_without_a_key_and_one_under_it() -> None:
    plain, keyed = remote(lost(), GOOD), remote(lost(), GOOD, keys=True)
    for shop in (plain, keyed):
        shop.send(CREDIT, 0.0)
        shop.reply(shop.send(replace(CREDIT, attempt=2), 5.0), 9.0)
    assert (len(plain.ledger), len(keyed.ledger)) == (2, 1)


def test_a_repeat_under_a_key_gets_the_first_ones_effect() -> None:
    shop = remote(lost(), GOOD, keys=True)
    shop.send(CREDIT, 0.0)
    again = shop.reply(shop.send(CREDIT, 5.0), 9.0)
    assert again is not None
    assert again.effect == shop.ledger[0].id


def test_a_key_with_other_arguments_is_a_mismatch() -> None:
    shop = remote(GOOD, GOOD, keys=True)
    shop.send(CREDIT, 0.0)
    other = shop.reply(shop.send(replace(CREDIT, arguments={"amount": 5}), 5.0), 9.0)
    assert other is not None
    assert other.answer == "mismatch"
    assert len(shop.ledger) == 1


def test_a_key_that_is_kept_no_more_is_a_new_request() -> None:
    shop = remote(GOOD, GOOD, keys=True, retention=60)
    shop.send(CREDIT, 0.0)
    shop.send(CREDIT, 100.0)
    shop.settle()
    assert len(shop.ledger) == 2


def test_the_network_may_deliver_a_request_twice() -> None:
    fate = replace(GOOD, again=(3.0,))
    plain, keyed = remote(fate), remote(fate, keys=True)
    for shop in (plain, keyed):
        shop.send(CREDIT, 0.0)
        shop.settle()
    assert (len(plain.ledger), len(keyed.ledger)) == (2, 1)
    assert (len(plain.arrivals), len(keyed.arrivals)) == (1, 1)


def test_a_refusal_changes_nothing_and_says_so() -> None:
    shop = remote(refusal("limited", asks=5.0))
    reply = shop.reply(shop.send(CREDIT, 0.0), 1.0)
    assert reply is not None
    assert (reply.status, reply.asks, shop.ledger) == (429, 5.0, [])


def test_nothing_leaves_for_a_provider_that_refuses_connections() -> None:
    shop = remote(GOOD, outages=[Outage(0.0, 60.0)])
    sent = shop.send(CREDIT, 5.0)
    assert not sent.left
    assert shop.settle() == 5.0
    assert shop.arrivals == []
    assert shop.look("act_1", 5.0) is None


def test_an_accepted_job_ends_later_and_somebody_is_told() -> None:
    told = []
    shop = remote(
        replace(GOOD, answer="accepted", commits=30.0),
        Fate(commits=None, answer="accepted", fails=20.0),
        told=lambda job, at: told.append((job.state, round(at))),
    )
    first = shop.send(CREDIT, 0.0)
    second = shop.send(replace(CREDIT, reference="act_2"), 0.0)
    reply = shop.reply(first, 1.0)
    assert reply is not None
    assert (reply.status, reply.effect) == (202, "")
    job = shop.poll(reply.job, 1.0)
    assert job is not None
    assert job.state == "processing"
    assert shop.reply(second, 1.0) is not None
    shop.settle()
    assert told == [("failed", 20), ("succeeded", 30)]


def test_an_undo_takes_its_effect_back() -> None:
    shop = remote(GOOD)
    shop.send(CREDIT, 0.0)
    shop.advance(1.0)
    shop.send(Call("void", "act_1_undo", undoes=shop.ledger[0].id), 2.0)
    shop.settle()
    assert shop.standing("act_1") == []
    assert len(shop.effects("act_1")) == 1


def test_the_weather_is_the_same_for_the_same_seed() -> None:
    storm = Weather(timeout=0.35, late=0.5, lagging=0.25, partial=0.15, redelivered=0.2, limited=0.1, error=0.1)

    def drawn(seed: int) -> list[Fate]:
        rng = random.Random(seed)
        return [storm.fate(rng) for _ in range(50)]

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)
    assert {one.replies is None for one in drawn(7)} == {True, False}
