"""Full examples of every page object: the contract between views and templates, shown by values."""

from tests.console.pages.circuits import circuits_page, empty_circuits_page
from tests.console.pages.confirm import confirm_page
from tests.console.pages.letters import empty_letters_page, letters_page
from tests.console.pages.queue import empty_queue_page, queue_page
from tests.console.pages.run import run_list_page, run_page
from tests.console.pages.shared import NOW, frame
from tests.console.pages.stops import empty_stops_page, stops_page
from tests.console.pages.task import quiet_task_page, task_page

__all__ = [
    "NOW",
    "circuits_page",
    "confirm_page",
    "empty_circuits_page",
    "empty_letters_page",
    "empty_queue_page",
    "empty_stops_page",
    "frame",
    "letters_page",
    "queue_page",
    "quiet_task_page",
    "run_list_page",
    "run_page",
    "stops_page",
    "task_page",
]
