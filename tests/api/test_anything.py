"""Whatever is sent to whatever address: never a 500, and nothing that a model would not vouch for reaches intake."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from steadyhand.identity import check

from tests.api.bodies import BODIES, BODILESS
from tests.api.conftest import RUN, Agent, Notes

ALL_TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | ALL_TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ALL_TEXT, inner, max_size=4))
OPERATIONS = st.sampled_from([*BODIES, *BODILESS])
FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *places(value[key])]]


@st.composite
def nearly_sound(draw: st.DrawFn) -> tuple[str, str, Any]:
    """A sound body in which one value is replaced by anything."""
    method, path = draw(st.sampled_from([*BODIES]))
    body = json.loads(json.dumps(BODIES[method, path]))
    container, key = draw(st.sampled_from(places(body)))
    container[key] = draw(JSON)
    return method, path, body


@FEW
@given(operation=OPERATIONS, body=st.binary(max_size=200))
def test_any_bytes_get_an_answer(operation: tuple[str, str], body: bytes, agent: Agent, notes: Notes) -> None:
    assert agent.send(operation[1], body, method=operation[0]).status_code < 500


@FEW
@given(operation=OPERATIONS, body=JSON)
def test_any_json_gets_an_answer(operation: tuple[str, str], body: Any, agent: Agent, notes: Notes) -> None:
    assert agent.send(operation[1], body, method=operation[0]).status_code < 500


@FEW
@given(sent=nearly_sound())
def test_a_nearly_sound_body_is_taken_whole_or_refused(
    sent: tuple[str, str, Any], agent: Agent, notes: Notes
) -> None:
    method, path, body = sent
    notes.calls.clear()
    response = agent.send(path, body, method=method)
    assert response.status_code in (200, 201, 400, 422)
    assert bool(notes.calls) == (response.status_code < 300)
    if notes.calls:
        check(notes.last.model_dump(mode="json"))


@FEW
@given(ident=st.text(max_size=60), tail=st.sampled_from(["", "/proposals", "/resume", "/../runs"]))
def test_any_path_gets_an_answer(ident: str, tail: str, agent: Agent, notes: Notes) -> None:
    assert agent.get(f"/runs/{ident}{tail}").status_code < 500


@FEW
@given(token=st.text(max_size=80))
def test_any_token_gets_an_answer(token: str, agent: Agent, notes: Notes) -> None:
    response = agent.get(f"/runs/{RUN}", headers={"authorization": f"Bearer {token}"})
    assert response.status_code in (200, 401)
