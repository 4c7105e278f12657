"""An agent as a process of its own, so that it can be killed: works one case, or goes on where it stopped."""

from __future__ import annotations

import os
import sys

from steadyhand import Boundary

from tests.stories.billing import Agent


def main(url: str, sandbox: str, workflow: str, reference: str, invoice: str) -> None:
    with Boundary(url, os.environ["AGENT_TOKEN"], max_wait=0) as boundary:
        run = boundary.run(workflow=workflow, intent="Credit", client_ref=reference)
        print(Agent(sandbox, invoice).work(run).state)


if __name__ == "__main__":
    main(*sys.argv[1:])
