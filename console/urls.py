"""The table of contents of the edge."""

from django.urls import URLPattern, URLResolver, include, path

from console.api import api, ops
from console.views import account, answer, circuits, decide, letters, presence, queue, runs, stops, tasks

# The agents' addresses stand first: they are looked up on every tool call.
urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", api.urls),
    path("healthz", ops.healthz, name="healthz"),
    path("readyz", ops.readyz, name="readyz"),
    path("", queue.queue, name="queue"),
    path("queue/news/", queue.news, name="queue_news"),
    path("tasks/<uuid:task_id>/", tasks.task, name="task"),
    path("tasks/<uuid:task_id>/live/", tasks.region, name="task_live"),
    path("tasks/<uuid:task_id>/claim/", decide.claim, name="claim"),
    path("tasks/<uuid:task_id>/release/", decide.release, name="release"),
    path("tasks/<uuid:task_id>/reconcile/", decide.reconcile, name="reconcile"),
    path("tasks/<uuid:task_id>/retry/", decide.retry, name="retry"),
    path("tasks/<uuid:task_id>/approve/", decide.approve, name="approve"),
    path("tasks/<uuid:task_id>/reject/", decide.reject, name="reject"),
    path("tasks/<uuid:task_id>/replay/", decide.replay, name="replay"),
    path("tasks/<uuid:task_id>/discard/", decide.discard, name="discard"),
    path("tasks/<uuid:task_id>/top-up/", decide.top_up, name="top_up"),
    path("tasks/<uuid:task_id>/resume/", decide.resume, name="resume"),
    path("tasks/<uuid:task_id>/attest/", decide.attest, name="attest"),
    path("tasks/<uuid:task_id>/compensate/", decide.compensate, name="compensate"),
    path("tasks/<uuid:task_id>/waive/", decide.waive, name="waive"),
    path("tasks/<uuid:task_id>/cancel/", decide.cancel, name="cancel"),
    path("tasks/<uuid:task_id>/request-input/", decide.request_input, name="request_input"),
    path("tasks/<uuid:task_id>/provide-input/", decide.provide_input, name="provide_input"),
    path("tasks/<uuid:task_id>/assign/", decide.assign, name="assign"),
    path("tasks/<uuid:task_id>/snooze/", decide.snooze, name="snooze"),
    path("tasks/<uuid:task_id>/reopen/", decide.reopen, name="reopen"),
    path("tasks/<uuid:task_id>/comment/", decide.comment, name="comment"),
    path("tasks/<uuid:task_id>/here/", presence.here, name="here"),
    path("runs/", runs.runs, name="runs"),
    path("runs/live/", runs.rows, name="runs_live"),
    path("runs/<uuid:run_id>/", runs.run, name="run"),
    path("runs/<uuid:run_id>/live/", runs.region, name="run_live"),
    path("letters/", letters.letters, name="letters"),
    path("stops/", stops.stops, name="stops"),
    path("stops/set/", stops.set_stop, name="set_stop"),
    path("stops/<uuid:stop_id>/lift/", stops.lift_stop, name="lift_stop"),
    path("answer/<str:link>/", answer.answer, name="answer"),
    path("circuits/", circuits.circuits, name="circuits"),
    path("circuits/hold/", circuits.hold_circuit, name="hold_circuit"),
    path("circuits/<uuid:circuit_id>/release/", circuits.release_circuit, name="release_circuit"),
    path("first-admin/<str:token>/", account.first_admin, name="first_admin"),
    path("accounts/login/", account.SignIn.as_view(), name="account_login"),
    path("accounts/", include("allauth.urls")),
]
