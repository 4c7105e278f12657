"""Durable-execution engines beside us in the same server, if somebody has scripts and an environment for them.

PEERS names the folder of the scripts; PEERS_PYTHON the interpreter in whose environment the engines are installed.
Each script prints one JSON object a line and takes its database from BENCH_DSN.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

SCRIPTS = (("dbos_peer.py", "steps"), ("langgraph_peer.py",))
SECONDS = 240


def measured(make_dsn: Callable[[], str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Every figure that the peers printed, and a sentence for each peer that was left out."""
    return _all(SCRIPTS, make_dsn)


def recovered(make_dsn: Callable[[], str], workflows: int) -> tuple[list[dict[str, Any]], list[str]]:
    """DBOS after a kill with so many workflows pending, in the same form."""
    return _all((("dbos_peer.py", "recover", str(workflows)),), make_dsn)


def recovery_seconds(figures: list[dict[str, Any]]) -> float | None:
    """From the relaunch until the last of them was done."""
    found = [float(one["all_done_s"]) for one in figures if str(one.get("bench", "")).startswith("dbos.recover")]
    return found[0] if found else None


def _all(scripts: Iterable[tuple[str, ...]], make_dsn: Callable[[], str]) -> tuple[list[dict[str, Any]], list[str]]:
    folder, python = os.environ.get("PEERS", ""), os.environ.get("PEERS_PYTHON", "")
    if not folder or not python:
        return [], ["No peers: name their folder with PEERS and an environment's interpreter with PEERS_PYTHON."]
    env = {**_plain(), "BENCH_DSN": make_dsn(), "BENCH_RUNS": os.environ.get("BENCH_RUNS", "1")}
    figures, sentences = [], []
    for script, *words in scripts:
        found, sentence = _run([python, str(Path(folder) / script), *words], env)
        figures += found
        sentences += [f"{script} was left out: {sentence}"] if sentence else []
    return figures, sentences


def step_ms(figures: list[dict[str, Any]]) -> dict[str, float]:
    """Milliseconds of one durable step of each peer, where it was measured."""
    named = {figure.get("bench"): figure for figure in figures}
    found = {
        "DBOS step": named.get("dbos.per_step.1thr", {}).get("ms_per_step"),
        "LangGraph node, sync": named.get("langgraph.sync", {}).get("ms_per_node"),
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "STEADYHAND"))}


def _run(command: list[str], env: dict[str, str]) -> tuple[list[dict[str, Any]], str]:
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as broken:
        return [], f"{type(broken).__name__}."
    found = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return found, "" if done.returncode == 0 else f"{last}."
