-- no transaction
-- Most executions have no key: they need no entry in an index of keys, at their start and at each change.
create unique index concurrently if not exists executions_idempotency on executions (workflow_id, idempotency_key)
  where idempotency_key is not null;
