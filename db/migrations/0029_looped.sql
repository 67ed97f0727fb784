-- no transaction: the records in loops by status and time, so that an execution with 100,000 of them is read a page at a time
create index concurrently if not exists node_executions_looped
  on node_executions (execution_id, status, started_at, position, node_id) include (id) where iteration <> '';
