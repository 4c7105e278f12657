"""What others put on the queue is turned away and written down, and the worker lives (F057)."""

from __future__ import annotations

import base64
import json
import pickle
import uuid
from typing import Any

import pytest
from redis import Redis

from console.celery import app
from recovery import tasks
from recovery.models import QuarantinedMessage
from recovery.quarantine import EXECUTE, LARGEST_BYTES, MANY, SWEEP, wrong_with
from recovery.tasks import Bell
from recovery.work.nudges import A_MESSAGE
from tests.crash.case import CreditCase
from tests.crash.test_every_point import lose_the_reply
from tests.stack import Stack, wait_for
from tests.stories.telling import press_check, settled

QUEUE = "steadyhand"
SECRET = "sk-canary-of-somebody"


def envelope(body: bytes, *, task: str = EXECUTE, content_type: str = "application/json") -> str:
    """A message as Celery puts it on a Redis queue."""
    own = {
        "correlation_id": str(uuid.uuid4()),
        "delivery_tag": str(uuid.uuid4()),
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": QUEUE},
        "priority": 0,
        "body_encoding": "base64",
    }
    return json.dumps(
        {
            "body": base64.b64encode(body).decode(),
            "content-encoding": "utf-8",
            "content-type": content_type,
            "headers": {"lang": "py", "task": task, "id": str(uuid.uuid4()), "root_id": None, "parent_id": None},
            "properties": own,
        }
    )


def told(*arguments: Any) -> bytes:
    return json.dumps([list(arguments), {}, {}]).encode()


POISON: dict[str, str] = {
    "no envelope at all": "{not json " + SECRET,
    "an envelope of something else": json.dumps([SECRET]),
    "a body that is no JSON": envelope(b"{" + SECRET.encode()),
    "a pickle": envelope(pickle.dumps(SECRET), content_type="application/x-python-serialize"),
    "a huge body": envelope(told("x" * 2_000_000)),
    "a task that is not ours": envelope(told(str(uuid.uuid4())), task="os.system"),
    "no id": envelope(told(SECRET)),
}


@pytest.mark.parametrize("poison", [*POISON])
def test_F057_what_is_no_message_of_ours_is_kept_with_an_owner_and_the_worker_lives(
    stack: Stack, poison: str
) -> None:
    before = {one.pk for one in QuarantinedMessage.objects.all()}
    worker = stack.processes["worker"].pid
    Redis(unix_socket_path=str(stack.broker_socket)).lpush(QUEUE, POISON[poison])
    wait_for(lambda: QuarantinedMessage.objects.exclude(pk__in=before).exists(), "the quarantine")
    (kept,) = QuarantinedMessage.objects.exclude(pk__in=before)
    assert kept.owner_team
    assert (stack.processes["worker"].pid, stack.processes["worker"].poll()) == (worker, None)
    assert SECRET not in (stack.folder / "worker.log").read_text()


def test_F057_the_worker_goes_on_after_all_of_them(case: CreditCase) -> None:
    lose_the_reply(case)
    decision = press_check(case.stack, str(case.run.pk))
    wait_for(lambda: settled(case.stack, decision), "the verdict")
    case.go_on()
    case.holds()


def test_F057_the_same_poison_again_is_counted(stack: Stack) -> None:
    body = envelope(told("the same"))
    for times in (1, 2):
        Redis(unix_socket_path=str(stack.broker_socket)).lpush(QUEUE, body)
        wait_for(lambda t=times: counted(told("the same")) == t, f"count {times}")


def counted(body: bytes) -> int:
    import hashlib

    found = QuarantinedMessage.objects.filter(digest=hashlib.sha256(body).hexdigest())
    return sum(found.values_list("times", flat=True))


def test_our_own_messages_are_none_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Celery makes of each bell that rings, byte for byte."""
    made: list[tuple[str, Any]] = []

    def publish(_producer: Any, name: str, message: Any, **_: Any) -> None:
        made.append((name, message.body))

    monkeypatch.setitem(vars(app.amqp), "send_task_message", publish)
    bell, ids = Bell(), [uuid.uuid4() for _ in range(A_MESSAGE)]
    bell(ids[0])
    bell.many(ids)
    tasks.sweep.apply_async(retry=False)
    assert [name for name, _ in made] == [EXECUTE, MANY, SWEEP]
    assert [wrong_with(name, "application/json", json.dumps(body)) for name, body in made] == [None] * 3


def test_no_task_of_ours_is_turned_away_for_its_name() -> None:
    ours = [name for name in app.tasks if name.startswith("recovery.")]
    assert sorted(ours) == sorted([EXECUTE, MANY, SWEEP])


@pytest.mark.parametrize(
    ("name", "content_type", "body", "reason"),
    [
        (EXECUTE, "application/json", b"x" * (LARGEST_BYTES + 1), "too large"),
        (EXECUTE, "application/x-python-serialize", told(str(uuid.uuid4())), "not JSON"),
        ("os.system", "application/json", told(), "no task"),
        (EXECUTE, "application/json", told(str(uuid.uuid4()), "more"), "not the id"),
        (EXECUTE, "application/json", b"[" * 9000, "not the id"),
        (EXECUTE, "application/json", b'[["00000000-0000-0000-0000-000000000000"], {"x": 1}, {}]', "not the id"),
        (MANY, "application/json", told(str(uuid.uuid4())), "not the id"),
        (MANY, "application/json", told([]), "not the id"),
        (MANY, "application/json", told([str(uuid.uuid4()), SECRET]), "not the id"),
        (MANY, "application/json", told([str(uuid.uuid4())] * (A_MESSAGE + 1)), "not the id"),
        (SWEEP, "application/json", told("now"), "unknown arguments"),
        (None, None, b"", "not JSON"),
    ],
)
def test_F057_each_way_of_being_none_of_ours_has_its_words(
    name: Any, content_type: Any, body: bytes, reason: str
) -> None:
    assert reason in (wrong_with(name, content_type, body) or "")
