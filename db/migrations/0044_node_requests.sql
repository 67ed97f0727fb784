-- What nodes have sent over HTTP and what came back: one row for each request of each attempt. A table of its own, so
-- that nobody who reads records or lists reads it too. Secrets are masked when it is shown: masking costs more than the
-- calls have time for.
create table node_requests (
  execution_id uuid not null references executions on delete cascade,
  -- The id of the node's record, which may be written later.
  record_id uuid not null,
  attempt integer not null,
  -- The request's number within the attempt, from 0.
  number integer not null,
  -- Zipped JSON, sealed.
  sealed bytea not null,
  primary key (execution_id, record_id, attempt, number)
);
