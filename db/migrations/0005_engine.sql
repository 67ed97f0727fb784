-- Where a run comes from beside its trigger: the run whose node started it (`parent_key` is nodeId#iteration), how
-- deep below a run without a parent, and the run that it retries or runs again.
alter table executions add column parent_id uuid, add column parent_key text,
  add column depth integer not null default 0, add column retried_from uuid,
  -- Outputs that nodes are given instead of being run: {nodeId: {output, handle, from}}.
  add column given json;
create index executions_parent on executions (parent_id) where parent_id is not null;
create index executions_retried on executions (retried_from) where retried_from is not null;

-- A loop's record knows its items: {count, pages}. `given_by` says whose output a node was given: PINNED, or an
-- execution's id.
alter table node_executions add column loop json, add column given_by text;

-- An errand may concern a part of an execution: one signal for each node that waits. The kinds are a list in outbox.ts.
alter table outbox drop constraint outbox_kind_check, drop constraint outbox_execution_id_kind_key,
  add column key text not null default '', add unique (execution_id, kind, key);
alter table outbox rename column execution_id to subject_id;
