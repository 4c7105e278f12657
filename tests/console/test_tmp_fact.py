import pytest
from tests import factories
pytestmark = pytest.mark.django_db
def test_a(house):
    c = factories.unknown_credit(house.agent)
    print(c.run.state, c.run.reason_code, c.task().state, c.action().state, c.action().due_at)
    d = factories.complete(house.agent)
    print(d.run.state, d.run.outcome)
    r = factories.open_run(house.agent); factories.rate_limit(r); print(r.run.state)
    r = factories.open_run(house.agent); print(factories.refuse(r)); print(r.run.state, factories.finish(r))
    factories.advance_clock(minutes=20)
