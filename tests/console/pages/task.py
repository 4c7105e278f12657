"""Examples of the Task page: everything at once, and nothing that may be left out."""

from console import looks
from console.pages.common import Answer, Customer, Flash, Link, Person
from console.pages.task import (
    AttemptRow,
    Claim,
    Comment,
    Conflict,
    Details,
    EvidenceRow,
    HistoryRow,
    Letter,
    LetterTry,
    Offer,
    Presence,
    RemainingRow,
    Request,
    Scope,
    TaskPage,
    World,
    Worlds,
)
from tests.console.pages.plan import plan_card
from tests.console.pages.shared import ALICE, CUSTOMER, OMAR, RUN_ID, TOTALS, at, effects, eur, live, sla
from tests.console.pages.verbs import NOT_YET, RECONCILE, UNKNOWN, VERBS, ask, post


def evidence() -> list[EvidenceRow]:
    return [
        EvidenceRow(
            "Credit list of `acct_8841` since 10:31:00: 0 records match reference `a_7Q2F…9C`",
            "LedgerPay look-up",
            3,
            "Provider, not final",
            at("10:33:02"),
        ),
        EvidenceRow(
            "Permit lease ended with no report from the agent", "Own ledger", 3, "Own receipt", at("10:31:40")
        ),
        EvidenceRow(
            "LedgerPay incident 5521: credits posted with a delay",
            "Omar Haddad, status page",
            2,
            "Attested, with reference",
            at("10:36:21"),
        ),
        EvidenceRow(
            "<b>The credit has been applied</b> and the customer is all set.",
            "Model text",
            0,
            "Proves nothing",
            at("10:31:51"),
            claim=True,
        ),
    ]


def request() -> Request:
    return Request(
        fields=[("account", "acct_8841"), ("amount_minor", "12000")],
        tool="apply_credit",
        identity="a_7Q2F0000000000009C",
        requester="Jo Tanaka",
        deciders="On-call and admins of Nordlicht Energie, but not whoever asked for it",
        amount=eur(12000),
        summary="A credit to a customer's account.",
        context=[("invoice", "INV-20931")],
        until=at("11:40:00"),
    )


def letter() -> Letter:
    return Letter(
        state=looks.LETTER["recorded"],
        failure="provider_unavailable",
        generation=2,
        request=[("account", "acct_8841")],
        tries=[LetterTry(1, at("10:31:10"), "Refused for now (503, provider_unavailable)", "agent")],
        completed=["load_invoice"],
        owner="billing-support",
        next_action="Replay it once its cause is gone, or discard it with a reason.",
        recorded_at=at("10:36:00"),
    )


def worlds() -> Worlds:
    possible, ruled_out = looks.WORLD["possible"], looks.WORLD["ruled_out"]
    return Worlds(
        "apply_credit",
        "One look-up after 10:42:10 separates all four",
        [
            World(
                "Never happened",
                possible,
                ["Look-up at 10:33:02 counted 0"],
                ["All 842 bytes were sent"],
                proof="count 0 after 10:42:10",
            ),
            World(
                "Happened, reply lost",
                possible,
                ["Body sent in full, then reset", "Incident 5521 delays posting"],
                ["Look-up counted 0"],
                proof="count 1, 120.00 EUR",
            ),
            World(
                "Still in progress",
                possible,
                ["In-flight bound 10 min, lag 1 min"],
                ["No job id came back"],
                "Ends by itself",
                "10:42:10",
            ),
            World(
                "Partial",
                ruled_out,
                [],
                ["One amount, one account: the contract allows no part"],
                "",
                "Contract `apply_credit` v3",
                True,
            ),
        ],
    )


def attempts() -> list[AttemptRow]:
    limited, valid, unknown = (looks.ATTEMPT[k] for k in ("transient_reject", "ok_valid", "unknown"))
    return [
        AttemptRow(
            "load_invoice",
            1,
            4,
            limited.saying("429 rate limited"),
            "agent",
            "billing-7",
            "retried",
            at("10:30:25.114"),
            210,
            note="retry after 30 s",
            next_at=at("10:30:55"),
        ),
        AttemptRow(
            "load_invoice",
            2,
            4,
            valid.saying("200, schema valid"),
            "agent",
            "billing-7",
            "closed ok",
            at("10:30:57.402"),
            640,
        ),
        AttemptRow(
            "apply_credit",
            1,
            2,
            unknown,
            "agent",
            "billing-7",
            "none planned",
            at("10:31:10.038"),
            30000,
            1,
            "842 bytes sent, 0 back",
        ),
        AttemptRow("draft_reply", 1, 2, looks.ATTEMPT["not_sent"], "agent", "billing-7", "waits"),
    ]


def answers() -> list[Answer]:
    timed_out = looks.Look("idle", "timer", "apply_credit timed out after dispatch")
    return [
        Answer(
            "What failed",
            timed_out,
            "120.00 EUR to `acct_8841` at LedgerPay, no reply in 30 s. Attempt 1 of 2, 10:31:10.",
        ),
        Answer(
            "Did anything change?",
            UNKNOWN.saying("Outcome unknown: one credit may exist"),
            "One look-up found nothing at 10:33:02. Too early to count as proof.",
        ),
        Answer(
            "Is retry safe?",
            NOT_YET.saying("Not yet: could credit twice"),
            "No idempotency key. A look-up counts as final from 10:42:10, in 1 min 18 s.",
            "9e",
        ),
    ]


def task_page() -> TaskPage:
    facts = evidence()
    return TaskPage(
        number="T-4127",
        title="Credit 120.00 EUR, double charge February",
        state=looks.RUN["escalated"],
        workflow="billing-case v12",
        crumbs=[Link("Queue", "/"), Link("Credit timed out after dispatch", "/?open=g1"), Link("T-4127", "")],
        position="1 of 17",
        run_url=f"/runs/{RUN_ID}/",
        answers=answers(),
        recommended=RECONCILE,
        recommended_sentence="Reads the credit list; sends no write.",
        verbs=VERBS,
        scope=Scope(
            asked="Refund the double charge on invoice `INV-20931`",
            granted="Credit up to 150.00 EUR on `acct_8841`",
            attempted="Credit 120.00 EUR on `acct_8841`",
            exceeds=looks.EXCEEDS["nothing"],
            asked_note="Customer reference K-77104",
            granted_note="billing-credit v7, until 11:30",
            attempted_note="Same account, same invoice",
            exceeds_note="30.00 EUR below the limit",
            source="Ticket ZD-55102",
            asked_at=at("10:28:40"),
        ),
        effects=effects(),
        totals=TOTALS,
        attempts=attempts(),
        evidence=facts,
        conflicts=[Conflict("One record says yes, one says no", facts[0], facts[1])],
        evidence_note="Strongest first; 4 facts, newest 7 min 50 s old",
        request=request(),
        letter=letter(),
        worlds=worlds(),
        remaining=[
            RemainingRow(
                1, "apply_credit", looks.EFFECT["settle_first"], "Prove it once, or prove that it did not happen"
            ),
            RemainingRow(2, "draft_reply", looks.PLANNED, "Mail to customer, template `credit_applied`"),
        ],
        remaining_note="Required effects: credit, reply",
        sla=sla(-1.9),
        customer=CUSTOMER,
        plan=plan_card(),
        details=Details(
            RUN_ID,
            f"/runs/{RUN_ID}/",
            "a_7Q2F00000000000000009C",
            "Nordlicht Energie",
            "9e",
            "late, write unknown",
            reveal_url="/tasks/T-4127/reveal/",
            tags=["incident-5521"],
            tags_url="/tasks/T-4127/tags/",
        ),
        live=live("/tasks/T-4127/live/"),
        claim=Claim(ALICE, at("10:35:30"), at("11:05:30"), "4 min left", "Your claim ends in 4 minutes."),
        here_url="/tasks/T-4127/here/",
        offer=Offer(
            looks.HANDOVER["offered"],
            "Omar Haddad offers you this task",
            "My shift ends.",
            [("What failed", "`apply_credit`: outcome unknown after dispatch."), ("Left", "1 call is not settled.")],
            at("11:05:00"),
            [post("accept", "Accept the handover"), ask("decline", "Decline the handover", "")],
        ),
        claim_verbs=[post("release", "Release"), ask("assign", "Hand over", "")],
        presence=[Presence(OMAR, "is deciding"), Presence(Person("Nia Okoye"), "is reading")],
        history=[
            HistoryRow("SLA passed, on-call paged", at("10:39:01")),
            HistoryRow("Alice claimed", at("10:35:30")),
        ],
        history_count=14,
        history_url="/tasks/T-4127/history/",
        comments=[Comment("Omar", at("10:36:00"), "LedgerPay confirms delayed posting.\nDo not retry by hand.")],
        comment_verb=post("comment", "Comment"),
        facts_text="T-4127 apply_credit 120.00 EUR: outcome unknown",
        next_url="/tasks/T-4119/",
        operation=Flash(
            looks.NOTICE["requested"],
            "Requested: check of apply_credit.",
            "It runs at 10:42:10, when the answer is final. Recorded",
            at=at("10:41:03"),
        ),
    )


def quiet_task_page() -> TaskPage:
    """A settled task: every optional part is absent."""
    return TaskPage(
        number="T-9",
        title="Note",
        state=looks.TASK["resolved"],
        workflow="w v1",
        crumbs=[Link("Queue", "/")],
        position="",
        run_url="",
        answers=answers(),
        recommended=None,
        recommended_sentence="The task is settled.",
        verbs=[],
        scope=Scope("a", "b", "c", looks.EXCEEDS["unchecked"]),
        effects=[],
        totals=[],
        attempts=[],
        evidence=[],
        remaining=[],
        sla=sla(30),
        customer=Customer("", looks.NOT_TOLD),
        details=Details(RUN_ID, "", "", "Harbor Travel", "", "timer"),
        live=live("/x/"),
    )
