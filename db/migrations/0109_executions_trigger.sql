-- no transaction: written while others write. Lists of what a trigger has started; with what else such lists filter by, so
-- that those that do not fit are passed over in the index alone.
create index concurrently if not exists executions_trigger on executions
  (team_id, trigger, created_at desc, id desc) include (workflow_id, status);
