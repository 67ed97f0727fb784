-- no transaction: written while others write. For the executions that ended in a span of time.
create index concurrently if not exists executions_ended on executions (team_id, completed_at)
  where completed_at is not null;
