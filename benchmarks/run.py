"""`make bench`: the boundary against the physical limit, in one run on one database that waits for its disk.

BENCH_ROUNDS sets how often every measurement is repeated (40), BENCH_CROWD the seconds of the crowd (2, 0 leaves it
out). Prints a Markdown table and then one JSON object a line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import house
from benchmarks.figures import Ratio, Series, against, line, table, timed

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "40"))
CROWD_SECONDS = float(os.environ.get("BENCH_CROWD", "2"))
BLOCK = 25

ONE, TWO, CORE = "one commit", "two commits", "guarded call, core"
HTTP, PING, TWO_AFTER, CHECK = "guarded call, HTTP", "ping", "two commits, again", "request check"


def main() -> None:
    with house.settle() as where:
        from benchmarks import calls, counting, crowd, peers, scenery, shapes

        shapes.make_table(house.dsn(where, owner=True))
        scene = scenery.build()
        session = shapes.connect(house.dsn(where))
        _lived_in(where, scene)
        with house.web(where) as address:
            series = _interleaved(scene, address, session)
        run = scene.open_run()
        counts = counting.counted(session, lambda: calls.core(scene, run))
        rates = _rates(crowd, scene, house.dsn(where)) if CROWD_SECONDS else {}
        others, sentences = peers.measured(lambda: house.peers_dsn(where))
    _print(series, _ratios(series, counts, rates, peers.step_ms(others)), counts, rates, others, sentences)


def _interleaved(scene: Any, address: str, session: Any) -> dict[str, Series]:
    """Blocks of every measurement in turn, each round between two probes: what drifts hits all of them alike."""
    from steadyhand import Boundary

    from benchmarks import calls, shapes

    series = {name: Series(name) for name in (ONE, TWO, CORE, CHECK, PING, HTTP, TWO_AFTER)}
    ping = calls.pinging(address, scene.token)
    with Boundary(address, scene.token) as boundary:
        _warm_up(scene, boundary, session)
        for _ in range(ROUNDS):
            run, by_http = scene.open_run(), calls.over_http(boundary)
            block: list[tuple[str, Callable[[], object]]] = [
                (ONE, lambda: shapes.one(session)),
                (TWO, lambda: shapes.two(session)),
                (CORE, partial(calls.core, scene, run)),
                (CHECK, calls.checking(scene, run)),
                (PING, ping),
                (HTTP, by_http),
                (TWO_AFTER, lambda: shapes.two(session)),
            ]
            for name, act in block:
                act()  # the first call after another kind of work pays for cold caches, whichever it is
                series[name].blocks.append(timed(act, BLOCK))
    return series


def _lived_in(where: Any, scene: Any) -> None:
    """Some calls, and the statistics about them that autovacuum gathers in the first minutes of an installation."""
    from benchmarks import calls

    for _ in range(10):
        timed(partial(calls.core, scene, scene.open_run()), 60)
    house.gather_statistics(where)


def _warm_up(scene: Any, boundary: Any, session: Any) -> None:
    from benchmarks import calls, shapes

    run, by_http = scene.open_run(), calls.over_http(boundary)
    for act in (lambda: shapes.two(session), lambda: calls.core(scene, run), by_http):
        timed(act, 50)


def _rates(crowd: Any, scene: Any, dsn: str) -> dict[str, float]:
    """Calls a second of eight processes, the bare ones before and after the guarded ones."""
    before = crowd.bare(dsn, CROWD_SECONDS)
    core = crowd.core(scene, CROWD_SECONDS)
    return {"two": (before + crowd.bare(dsn, CROWD_SECONDS)) / 2, "core": core}


def _limits(series: dict[str, Series]) -> tuple[list[float], list[float]]:
    """Seconds of two commits in each round (the mean of both probes), and of two commits with two ways there."""
    probes = zip(series[TWO].medians(), series[TWO_AFTER].medians(), strict=True)
    two = [(before + after) / 2 for before, after in probes]
    return two, [both + 2 * way for both, way in zip(two, series[PING].medians(), strict=True)]


def _ratios(
    series: dict[str, Series], counts: dict[str, float], rates: dict[str, float], steps: dict[str, float]
) -> list[Ratio]:
    two, two_and_ways = _limits(series)
    core, http = series[CORE], series[HTTP]
    ratios = [
        against("core / two commits", core, two, most=1.8),
        Ratio("core, p99 / p50", core.ms(0.99) / core.ms(0.5), most=3),
        Ratio("request check, µs", series[CHECK].ms(0.5) * 1e3, most=25),
        against("HTTP / (two commits + 2 pings)", http, two_and_ways, most=1.5),
        Ratio("commits of a call", counts["commits"], most=2),
        Ratio("round trips of a call", counts["round_trips"], most=2),
    ]
    if rates:
        ratios.append(Ratio("core / two commits, calls/s of 8 processes", rates["core"] / rates["two"], least=0.6))
    for name, ms in steps.items():
        ratios.append(Ratio(f"{name} / core", ms / core.ms(0.5), least=2.5 if "DBOS" in name else 2))
        if "DBOS" in name:
            ratios.append(Ratio(f"HTTP / {name}", http.ms(0.5) / ms, most=1))
    return ratios


def _print(
    series: dict[str, Series],
    ratios: list[Ratio],
    counts: dict[str, float],
    rates: dict[str, float],
    others: list[dict[str, Any]],
    sentences: list[str],
) -> None:
    rows = [(one.name, *(f"{one.ms(q):.3g}" for q in (0.5, 0.95, 0.99))) for one in series.values()]
    print(table(("measured", "p50 ms", "p95 ms", "p99 ms"), rows), end="\n\n")
    verdict = {True: "met", False: "missed", None: ""}
    compared = [(one.name, f"{one.value:.2f}", one.target, verdict[one.met]) for one in ratios]
    print(table(("ratio", "value", "target", ""), compared), end="\n\n")
    for sentence in sentences:
        print(sentence)
    figures = [one.figure() for one in series.values()] + [one.figure() for one in ratios]
    for figure in [*figures, {"counted": counts}, {"calls_per_s_of_8_processes": rates}, *others]:
        print(line(figure))


if __name__ == "__main__":
    main()
