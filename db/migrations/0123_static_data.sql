-- What code of a workflow keeps from one execution to the next: one row for the workflow, and one for each node.
create table static_data (
  id uuid primary key,
  workflow_id uuid not null references workflows on delete cascade,
  -- '' for what all nodes of the workflow share.
  node_id text not null,
  sealed bytea not null,
  changes bigint not null default 1,
  changed_at timestamptz(3) not null default now(),
  constraint static_data_place unique (workflow_id, node_id)
);
