-- The editors that wait for test calls of a workflow's webhooks, each until it expires or is renewed. A listener that
-- begins gets a new `lease`: a delivery that is sent again is known only within one lease.
create table webhook_listeners (
  workflow_id uuid not null references workflows on delete cascade,
  listener text not null,
  lease uuid not null default gen_random_uuid(),
  since timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (workflow_id, listener)
);
