-- Calls of a workflow that people keep, to try it with. They are not part of the workflow's versions or exports.
create table workflow_examples (
  id uuid primary key,
  workflow_id uuid not null references workflows on delete cascade,
  name text not null,
  -- The id of the node in the graph.
  trigger_node_id text not null,
  -- A request to a webhook, or the output of the trigger.
  kind text not null check (kind in ('REQUEST', 'DATA')),
  -- The size of the JSON that is sealed.
  bytes integer not null,
  sealed bytea not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint workflow_examples_name unique (workflow_id, name)
);
-- Nothing compresses what is sealed.
alter table workflow_examples alter column sealed set storage external;
