-- The attempts of nodes that have failed, and those after a first one: Temporal's history keeps only the last failure. A
-- table of its own, so that nobody who reads records or lists reads it too.
create table node_attempts (
  execution_id uuid not null references executions on delete cascade,
  -- The id of the node's record, which may be written later.
  record_id uuid not null,
  -- Counted from 1.
  attempt integer not null,
  -- Null if its worker was lost before it was noted.
  started_at timestamptz(3),
  -- The failure. Null while it is under way, and if nobody noted an end: then it has succeeded, or its worker was lost.
  ended_at timestamptz(3),
  error_type text,
  error_message text,
  -- Whether it counts against maxAttempts: the node itself has failed, not a worker or the database.
  counted boolean not null default false,
  primary key (execution_id, record_id, attempt)
);

-- Until when a node waits at the latest, and how many items a loop has: a client that follows an execution is told of
-- both. The first is meaningless once the record has ended.
alter table node_executions add column waiting_until timestamptz(3), add column item_count integer;
drop trigger node_executions_changed on node_executions;
create trigger node_executions_changed before update on node_executions for each row
  when ((old.status, old.started_at, old.completed_at, old.error_message, old.retry_count, old.next_attempt_at,
      old.waiting_until, old.item_count)
    is distinct from
    (new.status, new.started_at, new.completed_at, new.error_message, new.retry_count, new.next_attempt_at,
      new.waiting_until, new.item_count))
  execute function tell_node();
