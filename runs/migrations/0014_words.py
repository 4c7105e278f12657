"""The words of a run's intent are found by an index: each tenant's runs carry one word more, that nobody can type."""

from django.db import migrations

# Signs become blanks, so that INV-20931 is found by its number alone; "simple" takes every language as it is.
PLAIN = r"""translate(intent, '-_/.,:;@#%&+=*()[]{}<>|"''\?!~^$', repeat(' ', 31))"""
WORDS = f"to_tsvector('pg_catalog.simple', {PLAIN}) || array_to_tsvector(ARRAY['=' || tenant_id::text])"

# A build that was broken off leaves an index that answers nothing: it is made anew.
DROP = "DROP INDEX CONCURRENTLY IF EXISTS run_words"
INDEX = f"CREATE INDEX CONCURRENTLY run_words ON runs_run USING gin (({WORDS}))"

# It runs as the owner, for below the wall no index but those of plain comparisons is used; so it asks itself for the
# tenants that the wall is open to, and answers with ids and nothing else (SEC-29). What many say is found among the
# newest runs, without reading all of them; what few say is found by the index.
QUESTION = rf"""
CREATE FUNCTION app_runs_saying(sought text, tenants uuid[], most int) RETURNS SETOF uuid
  LANGUAGE sql STABLE SECURITY DEFINER ROWS 20 SET search_path = public, pg_temp SET enable_seqscan = off AS $$
  WITH readable AS MATERIALIZED (
    SELECT array_agg(one) AS ids FROM unnest(tenants) one WHERE one = ANY (app_tenants())
  ), asked AS MATERIALIZED (
    SELECT to_tsquery('pg_catalog.simple',
             string_agg(quote_literal(word) || CASE WHEN octet_length(word) > 2 THEN ':*' ELSE '' END, ' & ')) AS words
    FROM (
      SELECT word FROM regexp_split_to_table({PLAIN.replace("intent", "left(sought, 200)")}, '\s+') word
      WHERE word <> '' LIMIT 8
    ) typed
  ), fenced AS MATERIALIZED (
    SELECT words && (SELECT string_agg(quote_literal('=' || one::text), ' | ')::tsquery FROM readable, unnest(ids) one) AS words
    FROM asked WHERE numnode(words) > 0
  ), newest AS MATERIALIZED (
    SELECT run.id FROM readable, fenced, unnest(ids) one, LATERAL (
      SELECT id, {WORDS} AS words FROM runs_run WHERE tenant_id = one
      ORDER BY id DESC LIMIT greatest(500 / cardinality(ids), 50)
    ) run WHERE run.words @@ fenced.words LIMIT most
  )
  SELECT id FROM newest UNION
  (
    SELECT id FROM (
      SELECT run.id FROM readable, fenced, runs_run run
      WHERE ({WORDS.replace("intent", "run.intent").replace("tenant_id", "run.tenant_id")}) @@ fenced.words
        AND run.tenant_id = ANY (ids) AND (SELECT count(*) FROM newest) < most LIMIT 1000
    ) few ORDER BY id DESC LIMIT most
  )
$$;
"""  # noqa: S608


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0013_registered_by")]
    operations = [
        migrations.RunSQL(DROP, migrations.RunSQL.noop),
        migrations.RunSQL(INDEX, DROP),
        migrations.RunSQL(QUESTION, "DROP FUNCTION IF EXISTS app_runs_saying(text, uuid[], int)"),
    ]
