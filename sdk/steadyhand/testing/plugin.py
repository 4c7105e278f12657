"""The options of the conformance kit, and which of its checks a connector's promises call for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from steadyhand.testing.proxy import Proxy
from steadyhand.testing.subject import Subject, Unfit, load

KIT = "steadyhand.testing.connector"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("steadyhand", "conformance of a connector")
    group.addoption("--connector", metavar="WHAT", help="module:object, called with an address, or a manifest's file")
    group.addoption(
        "--connector-url", metavar="URL", help="where the system to test against is: a test account, never live"
    )
    group.addoption("--connector-tool", metavar="NAME", help="the write of a manifest that is tested")
    group.addoption(
        "--connector-arguments", metavar="JSON", help="arguments of one such write, where the connector names none"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promised(what): a check of something that a connector may leave out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A check of what is not promised is left out, and counted as such."""
    kit = [item for item in items if getattr(getattr(item, "module", None), "__name__", "") == KIT]
    if not kit:
        return
    promises = _subject(config).promises
    left_out = [item for item in kit if not all(promises.has(mark.args[0]) for mark in item.iter_markers("promised"))]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def subject(pytestconfig: pytest.Config) -> Subject:
    """The connector under test."""
    return _subject(pytestconfig)


@pytest.fixture
def line(subject: Subject) -> Iterator[Proxy]:
    """A way to the system that counts what arrives, and goes wrong when it is told to."""
    with Proxy(subject.base_url) as proxy:
        yield proxy


def _subject(config: pytest.Config) -> Subject:
    given: Any = config.stash.get(_KEPT, None)
    if given is None:
        given = config.stash[_KEPT] = _load(config)
    return given  # type: ignore[no-any-return]


def _load(config: pytest.Config) -> Subject:
    what, url = config.getoption("--connector"), config.getoption("--connector-url")
    if not what or not url:
        raise pytest.UsageError(
            "Name what to test with --connector, and a test account's address with --connector-url."
        )
    text = config.getoption("--connector-arguments")
    try:
        arguments = json.loads(text) if text else None
        return load(what, url, tool=config.getoption("--connector-tool"), arguments=arguments)
    except (Unfit, ValueError, ImportError, AttributeError, OSError) as wrong:
        raise pytest.UsageError(f"{what} cannot be tested: {wrong}") from wrong


_KEPT = pytest.StashKey[Subject]()
