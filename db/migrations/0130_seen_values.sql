-- The values that SKIP_SEEN nodes have let through, as hashes: a row for each value of a history.
create table seen_values (
  id bigint generated always as identity,
  workflow_id uuid not null references workflows on delete cascade,
  -- The hash of the history's name.
  history bytea not null,
  value bytea not null,
  -- The hash of the call that saw it first: an attempt that comes again is answered the same.
  call bytea not null,
  constraint seen_values_pkey primary key (workflow_id, history, value)
);
create index seen_values_oldest on seen_values (workflow_id, history, id);
