"""`manage.py decide --jsonl`: an answer for every line, and no line that stops the next one."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from recovery.management.commands.decide import LONGEST_LINE, answer, arriving_lines
from recovery.rules.decide import decide
from tests.recovery.evidence_space import evidence, sample

ROOT = Path(__file__).resolve().parents[2]


def line(**changes: object) -> bytes:
    return json.dumps(evidence()._asdict() | changes).encode()


def error_for(text: bytes) -> dict[str, str]:
    said = json.loads(answer(text))
    assert set(said) == {"error", "field"}
    return said


def run(monkeypatch: pytest.MonkeyPatch, text: bytes) -> list[dict[str, str]]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    out = io.StringIO()
    call_command("decide", "--jsonl", stdout=out)
    return [json.loads(said) for said in out.getvalue().splitlines()]


def test_it_prints_action_rule_and_reason() -> None:
    assert answer(line(observation="ok_valid")) == ('{"action": "CLOSE_OK", "rule": "7a", "reason": "completed"}\n')


def test_it_answers_as_the_table_does(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"\n".join(json.dumps(e._asdict()).encode() for e in sample()[:2000])
    answers = run(monkeypatch, text)
    assert answers == [decide(e)._asdict() for e in sample()[:2000]]


def test_a_bad_line_is_answered_and_the_next_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [b"", b"{", b"[]", b"\xff", line(gate="ajar"), b"x" * (3 * LONGEST_LINE)]
    answers = run(monkeypatch, b"\n".join([*bad, line()]))
    assert ["error" in said for said in answers] == [True] * len(bad) + [False]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"   \r",
        b"null",
        b'"write"',
        b"7",
        b"NaN",
        b"[]",
        b"[[1, 2]]",
        b'{"effect": "read"',
        b"{'effect': 'read'}",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe",
        b'{"effect": "\x00"}',
        b"[" * 50_000,
        b'{"a":' * 10_000,
        line() + line(),
        line() + b" " * LONGEST_LINE,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_line_that_is_not_one_object_is_refused_whole(text: bytes) -> None:
    assert error_for(text)["field"] == "line"


def test_an_empty_object_names_its_first_missing_field() -> None:
    assert error_for(b"{}")["field"] == "effect"


@pytest.mark.parametrize(
    ("was", "becomes", "field"),
    [
        (b'"reconcilable": true', b'"reconcilable": "true"', "reconcilable"),
        (b'"reconcilable": true', b'"reconcilable": 1', "reconcilable"),
        (b'"past_deadline": false', b'"past_deadline": 0', "past_deadline"),
        (b'"past_deadline": false', b'"past_deadline": NaN', "past_deadline"),
        (b'"past_deadline": false', b'"past_deadline": null', "past_deadline"),
        (b'"effect": "write"', b'"effect": Infinity', "effect"),
        (b'"effect": "write"', b'"effect": true', "effect"),
        (b'"effect": "write"', b'"effect": {"effect": "write", "effect": "write"}', "effect"),
        (b'"effect": "write"', b'"effect": ["write"]', "effect"),
        (b'"effect": "write"', b'"effect": ' + b"9" * 6000, "effect"),
        (b'"effect": "write"', b'"effect": "WRITE"', "effect"),
        (b'"effect": "write"', b'"effect": "write\\u0000"', "effect"),
        (b'"undo": "none"', b'"undo": "done"', "undo"),
        (b'"gate": "open"', b'"Gate": "open"', "Gate"),
        (b'"gate": "open"', b'"gate": "open", "extra": 1', "extra"),
        (b'"gate": "open"', b'"gate": "open", "\\ud800": 1', "\ud800"),
        (b'"gate": "open"', b'"gate": "open", "gate": "open"', "gate"),
        (b'"gate": "open"', b'"gate": "open", "look": 1, "look": 2', "look"),
        (b', "gate": "open"', b"", "gate"),
    ],
)
def test_a_field_at_fault_is_named(was: bytes, becomes: bytes, field: str) -> None:
    assert was in line()
    assert error_for(line().replace(was, becomes))["field"] == field


def test_white_space_escapes_and_order_do_not_matter() -> None:
    shuffled = json.dumps(dict(reversed(evidence()._asdict().items())), indent=1).replace("\n", " ")
    assert answer(f"  {shuffled} \r".encode().replace(b"write", b"\\u0077rite")) == answer(line())


def test_an_error_does_not_repeat_the_value_that_was_sent() -> None:
    assert "s3cret" not in answer(line(gate="s3cret"))


def test_a_line_of_any_length_is_held_only_as_far_as_needed() -> None:
    endless = io.BytesIO(b" " * (40 * LONGEST_LINE) + b"\n" + line())
    batches = [lines for lines in arriving_lines(endless) if lines]
    assert max(len(held) for lines in batches for held in lines) < 3 * LONGEST_LINE
    assert ["error" in answer(held) for lines in batches for held in lines] == [True, False]


def test_without_the_flag_it_says_what_is_missing() -> None:
    with pytest.raises(CommandError, match="--jsonl"):
        call_command("decide")


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    """The command as a process of its own, whose database does not exist."""
    environment = os.environ | {
        "STEADYHAND_TEST_CHILD": "1",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    }
    return subprocess.Popen(
        [sys.executable, "manage.py", "decide", "--jsonl"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def test_a_caller_who_waits_for_each_answer_gets_it(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin
    assert child.stdout
    with child:
        for text, rule in [(line(), "8i"), (line(gate="shut"), "8g")]:
            child.stdin.write(text + b"\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["rule"] == rule
        child.stdin.close()
        assert child.stdout.read() == b""
    assert child.returncode == 0


def test_a_tenth_of_the_promised_lines_takes_a_tenth_of_the_promised_minute(
    child: subprocess.Popen[bytes],
) -> None:
    text = b"".join(json.dumps(e._asdict()).encode() + b"\n" for e in sample()[:44_000])
    began = time.monotonic()
    out, _ = child.communicate(text)
    assert out.count(b"\n") == 44_000
    assert b"error" not in out
    assert time.monotonic() - began < 6
