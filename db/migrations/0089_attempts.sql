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
