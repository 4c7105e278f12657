"""Plays one episode again, event by event: `python -m tests.simulation --seed 17 --crash C10:after --fault F027`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from typing import Any


def main() -> int:
    asked = _asked()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    return _play(asked)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--crash", help="where a process dies: POINT:MODE or POINT:MODE:NTH, such as C10:after")
    parser.add_argument("--fault", action="append", default=[], help="a fault by its id, more than once if need be")
    parser.add_argument("--calm", action="store_true", help="nothing goes wrong but the named fault")
    parser.add_argument("--trace", action="store_true", help="show every event as it happens")
    return parser.parse_args()


def _setup(asked: argparse.Namespace) -> Any:
    from tests.simulation.faults import calm
    from tests.simulation.stories import story
    from tests.simulation.world import Crash

    if asked.calm:
        return calm(asked.fault[0], asked.seed)
    point, _, rest = (asked.crash or "").partition(":")
    mode, _, nth = rest.partition(":")
    crash = Crash(point, mode or "before", int(nth or 1)) if point else None
    return story(asked.seed, crash, tuple(asked.fault))


def _play(asked: argparse.Namespace) -> int:
    from tests.simulation.episode import play, theatre

    with theatre():
        try:
            made = play(_setup(asked), tracing=asked.trace)
        except Exception as broken:
            print("\n".join(getattr(broken, "__notes__", [])))
            traceback.print_exc(limit=-4)
            return 1
    print("\n".join(made.world.trace))
    print(f"{made.world.events} events, {made.world.now:.0f} s, {len(made.remote.arrivals)} arrivals: all holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
