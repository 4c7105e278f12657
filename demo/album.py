"""What of the console is pictured, how a visitor gets there, and what is left out on purpose."""

from dataclasses import dataclass

Step = str | tuple[str, str]
"""A selector, as Playwright reads it, that is clicked; or one with the text that is typed there."""


@dataclass(frozen=True)
class Picture:
    """One page: its route in `console.urls`, the address where the way begins, and the steps from there.

    A `narrow` one is pictured at the width of a phone too. A `stranger` sees it without signing in; where `link` is
    set, at the address that stands in that field after the steps.
    """

    name: str
    route: str
    start: str
    steps: tuple[Step, ...] = ()
    narrow: bool = False
    stranger: bool = False
    link: str = ""


UNFOLD = "a.toggle[aria-expanded=false]"
UNKNOWN = (UNFOLD, "tr.member a[data-open]")
QUESTION = "a[data-open]:has-text('the requester must change something')"
ASK = (QUESTION, "[data-verb=request_input]", ("#f-reason", "No address is on file."), ".sheet footer button.fill")

FREEZE = "form[action*='/bulk/new/'] button.fill"

ALBUM = [
    Picture("queue", "queue", "/", narrow=True),
    Picture("group", "queue", "/", (UNFOLD,)),
    Picture("task", "task", "/", UNKNOWN, narrow=True),
    Picture("sheet", "reconcile", "/", (*UNKNOWN, ".rec [data-recommended]"), narrow=True),
    Picture("runs", "runs", "/runs/", narrow=True),
    Picture("run", "run", "/runs/?q=acct_8850", ("a[data-open]",), narrow=True),
    Picture("plan", "run_plan", "/runs/?q=acct_8850", ("a[data-open]", "a[href$='/plan/']")),
    Picture("unknown", "unknown", "/unknown/", (UNFOLD,), narrow=True),
    Picture("bulk-new", "bulk_new", "/bulk/new/?verb=reconcile&view=unknown"),
    Picture("bulk", "bulk_operation", "/bulk/new/?verb=reconcile&view=unknown", (FREEZE,), narrow=True),
    Picture("bulks", "bulk", "/bulk/"),
    Picture("views", "views", "/views/"),
    Picture("search", "search", "/search/?q=refund", narrow=True),
    Picture("workflows", "settings_workflows", "/settings/workflows/"),
    Picture("workflow", "settings_workflow", "/settings/workflows/", ("main table a",)),
    Picture("connectors", "settings_connectors", "/settings/connectors/"),
    Picture("help", "help", "/help/"),
    Picture("letters", "letters", "/letters/"),
    Picture("circuits", "circuits", "/circuits/"),
    Picture("stops", "stops", "/stops/"),
    Picture("sign-in", "account_login", "/accounts/login/", stranger=True, narrow=True),
    Picture("answer", "answer", "/", ASK, stranger=True, link="#address"),
]

UNPICTURED = {
    "healthz": "an answer for machines",
    "readyz": "an answer for machines",
    "queue_news": "the polled part of the queue",
    "unknown_news": "the polled part of the unknown writes",
    "task_live": "the polled part of the task",
    "run_live": "the polled part of the run",
    "run_raw": "JSON for machines",
    "run_bundle": "a file",
    "run_plan_live": "the polled part of the plan",
    "runs_live": "the polled part of the list",
    "bulk_live": "the polled part of the operation",
    "settings": "it leads to the first of its parts",
    "settings_connectors_live": "the polled part of the connectors",
    "settings_diff": "the demo registers one version of each workflow",
    "settings_members": "seen by admins and auditors; the pictures are taken by somebody on call",
    "change_roles": "seen by admins; the pictures are taken by somebody on call",
    "help_topic": "one text of the help",
    "help_rule": "one text of the help",
    "first_admin": "its link is good once and only while there is no admin",
    **dict.fromkeys(
        [
            "approve", "assign", "attest", "cancel", "compensate", "decline", "discard", "provide_input", "reject",
            "reopen", "replay", "request_input", "resume", "retry", "snooze", "top_up", "waive",
        ],
        "another verb on the same sheet",
    ),
}  # fmt: skip
"""Routes of pages that have no picture, and why."""
