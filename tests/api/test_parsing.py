"""SEC-16: what may stand in a body at all, whichever operation it is for."""

import io
import json
import time
from typing import Any

import pytest
from steadyhand.contract import MAX_BODY_BYTES, MAX_REPLY_BYTES, MAX_REPORT_BYTES

from tests.api.bodies import MANIFEST, PROPOSAL, REPORT
from tests.api.conftest import RUN, Agent, Notes, problem

pytestmark = pytest.mark.security
PROPOSALS = f"/runs/{RUN}/proposals"
REPORTS = f"/runs/{RUN}/reports"


def proposal(**arguments: Any) -> dict[str, Any]:
    return {**PROPOSAL, "arguments": arguments}


def raw(arguments: str) -> bytes:
    """A proposal whose arguments are written out as given."""
    return json.dumps({**PROPOSAL, "arguments": "HERE"}).replace('"HERE"', arguments).encode()


BAD_TEXT = {
    "not json": (b"{", "body", "valid JSON"),
    "nothing": (b"", "body", "valid JSON"),
    "a trailing word": (b"{} x", "body", "line 1, column 4"),
    "a single quote": (b"{'a': 1}", "body", "valid JSON"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "body", "valid JSON"),
    "a list": (b"[]", "body", "JSON object"),
    "a bare text": (b'"hello"', "body", "JSON object"),
    "null": (b"null", "body", "JSON object"),
    "latin-1": ('{"tool": "é"}'.encode("latin-1"), "body", "UTF-8"),
    "a surrogate in UTF-8": (b'{"tool": "\xed\xa0\x80"}', "body", "UTF-8"),
    "a control character": (b'{"tool": "a\nb"}', "body", "valid JSON"),
    "NaN": (raw('{"a": NaN}'), "arguments.a", "finite"),
    "Infinity": (raw('{"a": [1, -Infinity]}'), "arguments.a.1", "finite"),
    "a float beyond range": (raw('{"a": 1e999}'), "arguments.a", "finite"),
    "a repeated name": (b'{"tool": "a", "tool": "b"}', "tool", "once"),
    "a repeated name deep down": (raw('{"a": [{"b": {"c": 1, "c": 1}}]}'), "arguments.a.0.b.c", "once"),
    "a repeated name in another spelling": (raw('{"a": 1, "\\u0061": 1}'), "arguments.a", "once"),
    "a NUL": (raw('{"a": "x\\u0000"}'), "arguments.a", "NUL"),
    "a NUL in a name": (raw('{"a\\u0000": 1}'), "arguments.a\ufffd", "NUL"),
    "a lone surrogate": (raw('{"a": "\\ud800"}'), "arguments.a", "surrogate"),
    "surrogates in the wrong order": (raw('{"a": "\\udc00\\ud800"}'), "arguments.a", "surrogate"),
    "a lone surrogate in a name": (raw('{"\\udfff": 1}'), "arguments.\ufffd", "surrogate"),
    "19 digits": (raw('{"id": 1234567890123456789}'), "arguments.id", "as text"),
    "a negative 19 digits": (raw('{"id": -1234567890123456789}'), "arguments.id", "as text"),
    "2^53": (raw('{"id": 9007199254740992}'), "arguments.id", "as text"),
    "a float as long": (raw('{"id": 1e300}'), "arguments.id", "as text"),
    "5000 digits": (raw('{"id": [' + "9" * 5000 + "]}"), "arguments.id.0", "as text"),
    "a long text": (raw(json.dumps({"a": "x" * 16385})), "arguments.a", "16384 characters"),
    "a long name": (raw(json.dumps({"x" * 16385: 1})), f"arguments.{'x' * 80}…", "16384 characters"),
}


@pytest.mark.parametrize("name", BAD_TEXT)
def test_what_json_leaves_open_is_refused_with_field_and_remedy(name: str, agent: Agent, notes: Notes) -> None:
    body, field, words = BAD_TEXT[name]
    faults = problem(agent.post(PROPOSALS, body), 400)
    assert words in faults[field]
    assert notes.calls == []


def test_several_faults_are_told_at_once(agent: Agent, notes: Notes) -> None:
    faults = problem(agent.post(PROPOSALS, raw('{"a": NaN, "b": "\\u0000", "c": {"d": 1, "d": 2}}')), 400)
    assert set(faults) == {"arguments.a", "arguments.b", "arguments.c.d"}


@pytest.mark.parametrize("value", ["👋", "\u202e", "Ärger", "\u2028", "x" * 16384, ""])
def test_any_real_text_passes_unchanged(value: str, agent: Agent, notes: Notes) -> None:
    assert agent.post(PROPOSALS, proposal(a=value)).status_code == 200
    assert notes.last.arguments == {"a": value}


@pytest.mark.parametrize("number", [2**53 - 1, -(2**53 - 1), 0, 0.5, -1.5e-300, True, None])
def test_numbers_that_every_reader_agrees_on_pass(number: Any, agent: Agent, notes: Notes) -> None:
    assert agent.post(PROPOSALS, proposal(a=number)).status_code == 200
    assert notes.last.arguments == {"a": number}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_twenty_levels_pass_and_one_more_does_not(agent: Agent, notes: Notes) -> None:
    assert agent.post(PROPOSALS, proposal(a=nested(18))).status_code == 200
    [(field, remedy)] = problem(agent.post(PROPOSALS, proposal(a=nested(19))), 400).items()
    assert field.startswith("arguments.a.0.0")
    assert remedy == "nest at most 20 levels"


BOMBS = {
    "lists": b"[" * MAX_BODY_BYTES,
    "closed lists": raw('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    "objects": raw('{"a":' * 40_000 + "1" + "}" * 40_000),
    "a wide list": raw('{"a": [' + "1," * 120_000 + "1]}"),
    "a wide object": raw("{" + ",".join(f'"{n}":1' for n in range(25_000)) + "}"),
    "a repeated name": raw("{" + ",".join('"a":1' for _ in range(40_000)) + "}"),
    "digits": raw('{"a": ' + "9" * 250_000 + "}"),
    "quotes and commas": b'{"a": "' + b'\\",' * 80_000,
    "quotes": b'"\\' * 130_000,
    "many lists": raw('{"a": [' + "[]," * 80_000 + "[]]}"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_costs_anything(name: str, agent: Agent, notes: Notes) -> None:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        problem(agent.post(PROPOSALS, BOMBS[name]), 400)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05
    assert notes.calls == []


def test_five_hundred_fields_and_items_in_all(agent: Agent, notes: Notes) -> None:
    spare = 500 - len(PROPOSAL)
    assert agent.post(PROPOSALS, proposal(**{f"f{n}": n for n in range(spare)})).status_code == 200
    faults = problem(agent.post(PROPOSALS, proposal(**{f"f{n}": n for n in range(spare + 1)})), 400)
    assert faults == {"body": "send at most 500 fields and items in all"}


def test_commas_in_text_are_no_fields(agent: Agent, notes: Notes) -> None:
    assert agent.post(PROPOSALS, proposal(a=',"' * 5000)).status_code == 200


def test_a_manifest_may_have_more_fields(agent: Agent, notes: Notes) -> None:
    tools = [{"name": f"tool.{n}", "effect": "read", "title": "x", "version": 1} for n in range(200)]
    assert agent.put("/workflows/billing", {"tools": tools}).status_code == 201


@pytest.mark.parametrize("size", [16385, 64 * 1024])
def test_only_the_answer_of_a_tool_may_be_long(size: int, agent: Agent, notes: Notes) -> None:
    observation = {**REPORT["observation"], "body": "x" * size}
    assert agent.post(REPORTS, {**REPORT, "observation": observation}).status_code == 200
    assert len(notes.last.observation.body) == size
    assert "arguments.observation.body" in problem(agent.post(PROPOSALS, proposal(observation=observation)), 400)


def test_the_answer_of_a_tool_ends_at_a_mebibyte(agent: Agent, notes: Notes) -> None:
    for length, status in ((MAX_REPLY_BYTES, 200), (MAX_REPLY_BYTES + 1, 400)):
        observation = {**REPORT["observation"], "body": "x" * length}
        answer = agent.post(REPORTS, {**REPORT, "observation": observation})
        assert answer.status_code == status
    assert str(MAX_REPLY_BYTES) in problem(answer, 400)["observation.body"]


def test_a_report_has_room_for_an_answer_and_no_more(agent: Agent, notes: Notes) -> None:
    faults = problem(agent.post(REPORTS, b" " * (MAX_REPORT_BYTES + 1)), 413)
    assert faults == {"body": f"send at most {MAX_REPORT_BYTES // 1024} KiB"}


def test_a_body_ends_at_256_kib(agent: Agent, notes: Notes) -> None:
    body = json.dumps(PROPOSAL).encode()
    assert agent.post(PROPOSALS, body + b" " * (MAX_BODY_BYTES - len(body))).status_code == 200
    faults = problem(agent.post(PROPOSALS, body + b" " * (MAX_BODY_BYTES + 1 - len(body))), 413)
    assert faults == {"body": "send at most 256 KiB"}


class Tap(io.BytesIO):
    """A body that counts how much of it was drunk."""

    drunk = 0

    def read(self, size: int | None = -1) -> bytes:  # type: ignore[override]
        data = super().read(size)
        self.drunk += len(data)
        return data


def chunked(agent: Agent, tap: Tap, **environ: Any) -> Any:
    whole = {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": tap, **environ}
    return agent.post(PROPOSALS, b"", **whole)


def test_a_long_body_is_refused_by_its_length_unread(agent: Agent, notes: Notes) -> None:
    tap = Tap(b" " * 1_000_000)
    problem(agent.post(PROPOSALS, b"", CONTENT_LENGTH="1000000", **{"wsgi.input": tap}), 413)
    problem(agent.post(PROPOSALS, b"", CONTENT_LENGTH="9" * 5000, **{"wsgi.input": tap}), 413)
    assert tap.drunk == 0


def test_a_body_without_a_length_is_read_to_the_limit_only(agent: Agent, notes: Notes) -> None:
    tap = Tap(b" " * 1_000_000)
    problem(chunked(agent, tap, **{"wsgi.input_terminated": True}), 413)
    assert tap.drunk == MAX_BODY_BYTES + 1
    assert chunked(agent, Tap(json.dumps(PROPOSAL).encode()), **{"wsgi.input_terminated": True}).status_code == 200


def test_a_body_that_may_never_end_needs_a_length(agent: Agent, notes: Notes) -> None:
    problem(chunked(agent, Tap(b"{}")), 411)


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "text/json"]
)
def test_only_json_in_utf_8_is_read(kind: str, agent: Agent, notes: Notes) -> None:
    assert "application/json" in problem(agent.post(PROPOSALS, PROPOSAL, content_type=kind), 415)["body"]


def test_a_packed_body_is_not_unpacked(agent: Agent, notes: Notes) -> None:
    problem(agent.post(PROPOSALS, PROPOSAL, headers={"content-encoding": "gzip"}), 415)


def test_a_charset_may_be_named(agent: Agent, notes: Notes) -> None:
    assert agent.post(PROPOSALS, PROPOSAL, content_type="application/json; charset=UTF-8").status_code == 200
    assert agent.put("/workflows/billing", MANIFEST, content_type="Application/JSON").status_code == 201
