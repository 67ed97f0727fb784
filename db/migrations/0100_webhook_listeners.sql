-- Who waits in an editor for test calls of a workflow's webhooks, and until when unless they say so again. `lease` is
-- made anew by each listener who begins: calls that repeat a delivery are told apart by it.
create table webhook_listeners (
  workflow_id uuid not null references workflows on delete cascade,
  listener text not null,
  lease uuid not null default gen_random_uuid(),
  since timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (workflow_id, listener)
);
