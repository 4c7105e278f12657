"""A dead letter is whole or it is not written: the database says so (F105, F158)."""

from django.conf import settings
from django.db import migrations, models

HOLDS_ITS_CALL = """
ALTER TABLE recovery_deadletter ADD CONSTRAINT dead_letter_holds_its_call CHECK (
  CASE WHEN jsonb_typeof(request) = 'object' AND jsonb_typeof(attempts) = 'array'
    AND jsonb_typeof(completed_effects) = 'array'
  THEN request ?& ARRAY['tool', 'step', 'arguments', 'arguments_hash']
    AND request ->> 'tool' <> '' AND request ->> 'arguments_hash' <> '' AND jsonb_array_length(attempts) > 0
  ELSE false END) NOT VALID;
ALTER TABLE recovery_deadletter VALIDATE CONSTRAINT dead_letter_holds_its_call;
"""
FORGET = "ALTER TABLE recovery_deadletter DROP CONSTRAINT dead_letter_holds_its_call;"


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0012_outside"),
        ("runs", "0009_residuals"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="deadletter",
            name="dead_letter_has_an_owner",
        ),
        migrations.AddConstraint(
            model_name="deadletter",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("owner_team", ""), _negated=True), ("owner__isnull", False), _connector="OR"
                ),
                name="dead_letter_has_an_owner",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadletter",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("identity", ""), _negated=True),
                    models.Q(("failure_class", ""), _negated=True),
                    models.Q(("next_action", ""), _negated=True),
                    ("generation__gte", 1),
                ),
                name="dead_letter_is_complete",
            ),
        ),
        migrations.RunSQL(HOLDS_ITS_CALL, FORGET),
    ]
