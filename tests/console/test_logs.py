"""What the log says, and what it may not keep."""

import pytest

from console import logs


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/answer/eyJydW4iOiI3:1tX:c2lnbmF0dXJl/", "/answer/…/"),
        ("/first-admin/Zk3v9-secret/", "/first-admin/…/"),
        ("/accounts/password/reset/key/MQ-abc123-def/", "/accounts/password/reset/key/…/"),
        ("/tasks/0198c1de/", "/tasks/0198c1de/"),
    ],
)
def test_a_link_that_lets_somebody_act_stands_in_no_line_of_the_log(path: str, kept: str) -> None:
    line = logs.hide_links(None, "error", {"event": f"Internal Server Error: {path}", "status": 500})
    assert line == {"event": f"Internal Server Error: {kept}", "status": 500}


@pytest.mark.parametrize("readable", [True, False])
def test_both_shapes_of_the_log_hide_links_before_they_write(readable: bool) -> None:
    assert logs.hide_links in logs._renderers(readable=readable)[:-1]
