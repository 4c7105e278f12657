"""Full examples of every page object: the contract between views and templates, shown by values."""

from tests.console.pages.circuits import circuits_page, empty_circuits_page
from tests.console.pages.confirm import confirm_page
from tests.console.pages.connectors import connectors_page, empty_connectors_page
from tests.console.pages.help import help_page, topic_page
from tests.console.pages.letters import empty_letters_page, letters_page
from tests.console.pages.members import bare_roles_page, members_page, roles_page
from tests.console.pages.plan import empty_plan_page, plan_page
from tests.console.pages.queue import empty_queue_page, queue_page
from tests.console.pages.run import run_list_page, run_page
from tests.console.pages.search import empty_search_page, search_page
from tests.console.pages.shared import NOW, frame
from tests.console.pages.stops import empty_stops_page, stops_page
from tests.console.pages.task import quiet_task_page, task_page
from tests.console.pages.unknown import empty_unknown_page, unknown_page
from tests.console.pages.views import empty_views_page, views_page
from tests.console.pages.workflows import (
    bare_workflow_page,
    diff_page,
    empty_diff_page,
    empty_workflows_page,
    workflow_page,
    workflows_page,
)

__all__ = [
    "NOW",
    "bare_roles_page",
    "bare_workflow_page",
    "circuits_page",
    "confirm_page",
    "connectors_page",
    "diff_page",
    "empty_circuits_page",
    "empty_connectors_page",
    "empty_diff_page",
    "empty_letters_page",
    "empty_plan_page",
    "empty_queue_page",
    "empty_search_page",
    "empty_stops_page",
    "empty_unknown_page",
    "empty_views_page",
    "empty_workflows_page",
    "frame",
    "help_page",
    "letters_page",
    "members_page",
    "plan_page",
    "queue_page",
    "quiet_task_page",
    "roles_page",
    "run_list_page",
    "run_page",
    "search_page",
    "stops_page",
    "task_page",
    "topic_page",
    "unknown_page",
    "views_page",
    "workflow_page",
    "workflows_page",
]
