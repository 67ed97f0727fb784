-- People and teams ---------------------------------------------------------

create table users (
  id uuid primary key,
  email text not null,
  first_name text not null,
  last_name text not null,
  password_hash text not null,
  instance_admin boolean not null default false,
  created_at timestamptz(3) not null default now()
);
create unique index users_email on users (lower(email));

create table sessions (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null
);
create index sessions_user on sessions (user_id);
create index sessions_expiry on sessions (expires_at);

-- Failed sign-ins per account and per address: doubling delays, cleared by a success.
create table signin_failures (
  key text primary key,
  failures integer not null,
  blocked_until timestamptz(3) not null,
  updated_at timestamptz(3) not null default now()
);

create table teams (
  id uuid primary key,
  name text not null,
  description text,
  plan text not null default 'ENTERPRISE' check (plan in ('FREE', 'TEAM', 'BUSINESS', 'ENTERPRISE')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);

create table members (
  team_id uuid not null references teams on delete cascade,
  user_id uuid not null references users on delete cascade,
  role text not null check (role in ('ADMIN', 'BUILDER', 'OPERATOR')),
  joined_at timestamptz(3) not null default now(),
  primary key (team_id, user_id)
);
create index members_user on members (user_id);

create table sdk_tokens (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  user_id uuid not null references users on delete cascade,
  name text not null,
  role text not null check (role in ('ADMIN', 'BUILDER', 'OPERATOR', 'VIEWER')),
  token_hash bytea not null unique,
  hint text not null,
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3)
);
create index sdk_tokens_team on sdk_tokens (team_id, created_at desc);

-- The audit chain: one head row per team is the lock and the tail. No foreign keys: it outlives its team.

create table audit_heads (
  team_id uuid primary key,
  seq bigint not null,
  hash bytea not null,
  ts timestamptz(3) not null,
  mac bytea not null,
  key_id text not null
);

create table audit_entries (
  id uuid primary key,
  team_id uuid not null,
  seq bigint not null,
  prev bytea not null,
  hash bytea not null,
  ts timestamptz(3) not null,
  event_id uuid not null,
  actor_kind text not null,
  actor_id uuid,
  actor_role text,
  actor_name text,
  action text not null,
  resource_type text not null,
  resource_id uuid,
  outcome text not null,
  request_id text,
  src_ip text,
  details json not null,
  details_salt bytea not null,
  details_sha256 bytea not null,
  core text not null,
  unique (team_id, seq),
  unique (team_id, prev),
  unique (team_id, event_id)
);
create index audit_entries_time on audit_entries (team_id, ts desc);

create function audit_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'audit entries cannot be altered or removed' using errcode = 'insufficient_privilege';
end $$;
create trigger audit_entries_append_only before update or delete on audit_entries
  for each row execute function audit_is_append_only();
create trigger audit_entries_no_truncate before truncate on audit_entries
  for each statement execute function audit_is_append_only();

-- Workflows ----------------------------------------------------------------

create table workflows (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  description text,
  active boolean not null default false,
  version integer not null,
  settings json not null,
  created_by uuid,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  unique (team_id, name)
);
create index workflows_team on workflows (team_id, created_at desc, id desc);

-- Immutable: a run is pinned to its version.
create table workflow_versions (
  workflow_id uuid not null references workflows on delete cascade,
  version integer not null,
  nodes json not null,
  edges json not null,
  node_count integer not null,
  created_by uuid,
  created_at timestamptz(3) not null default now(),
  primary key (workflow_id, version)
);

-- Executions ---------------------------------------------------------------

create table executions (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid not null references workflows on delete cascade,
  workflow_name text not null,
  workflow_version integer not null,
  node_count integer not null,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED')),
  trigger text not null,
  trigger_node_id text not null,
  timeout_ms bigint,
  input_data json not null,
  input_bytes integer not null,
  error_message text,
  started_by_kind text not null,
  started_by_id uuid,
  idempotency_key text,
  idempotency_hash bytea,
  created_at timestamptz(3) not null default now(),
  started_at timestamptz(3),
  completed_at timestamptz(3),
  cancel_requested_at timestamptz(3),
  -- How far the projection has read: position of the Temporal run in its chain, its id, its last event.
  run_position integer not null default 0,
  run_id text,
  last_event_id integer not null default 0,
  projection_failures integer not null default 0,
  checked_at timestamptz(3) not null default now(),
  unique (workflow_id, idempotency_key)
);
create index executions_team on executions (team_id, created_at desc, id desc);
create index executions_team_status on executions (team_id, status, created_at desc, id desc);
create index executions_workflow on executions (workflow_id, created_at desc, id desc);
create index executions_workflow_status on executions (workflow_id, status, created_at desc, id desc);
create index executions_open on executions (checked_at) where status in ('PENDING', 'RUNNING');

create table node_executions (
  id uuid primary key,
  execution_id uuid not null references executions on delete cascade,
  node_id text not null,
  iteration text not null default '',
  node_name text not null,
  node_type text not null,
  status text not null check (status in ('PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED')),
  started_at timestamptz(3) not null,
  completed_at timestamptz(3),
  -- The output's envelope: {v} holds the value, {ref, bytes} names a blob.
  output json,
  handle text,
  error_message text,
  retry_count integer not null default 0,
  -- False while only a live attempt has told of it; what history settled is never overwritten by a live write.
  settled boolean not null default false,
  position integer not null default 0,
  unique (execution_id, node_id, iteration)
);

-- Outputs too big for a Temporal payload, sealed, one row per distinct value of an execution.
create table blobs (
  execution_id uuid not null references executions on delete cascade,
  hash text not null,
  bytes integer not null,
  sealed bytea not null,
  primary key (execution_id, hash)
);

-- What Temporal shall do, written in the transaction that decided it, removed once it is done.
create table outbox (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('START', 'CANCEL', 'DELETE')),
  execution_id uuid not null,
  attempts integer not null default 1,
  -- Whoever wrote the row carries it out at once; only where that failed does the sweeper find it due.
  due_at timestamptz(3) not null default now() + interval '5 seconds',
  last_error text,
  created_at timestamptz(3) not null default now(),
  unique (execution_id, kind)
);
create index outbox_due on outbox (due_at, id);

-- Totals of the lists, kept with the rows. A row per writer slot, so that parallel runs do not queue on one counter.
create table execution_counts (
  team_id uuid not null,
  workflow_id uuid not null,
  status text not null,
  slot integer not null,
  n bigint not null,
  primary key (team_id, workflow_id, status, slot)
);
create index execution_counts_workflow on execution_counts (workflow_id, status);

create function count_executions() returns trigger language plpgsql as $$
declare
  my_slot integer := pg_backend_pid() % 32;
begin
  if tg_op = 'INSERT' then
    insert into execution_counts as c
      select team_id, workflow_id, status, my_slot, count(*) from added group by 1, 2, 3 order by 1, 2, 3
      on conflict (team_id, workflow_id, status, slot) do update set n = c.n + excluded.n;
  elsif tg_op = 'UPDATE' then
    insert into execution_counts as c
      select team_id, workflow_id, status, my_slot, sum(d) from (
        select a.team_id, a.workflow_id, a.status, 1 as d
          from added a join removed r using (id) where a.status <> r.status
        union all
        select r.team_id, r.workflow_id, r.status, -1
          from added a join removed r using (id) where a.status <> r.status
      ) moves group by 1, 2, 3 having sum(d) <> 0 order by 1, 2, 3
      on conflict (team_id, workflow_id, status, slot) do update set n = c.n + excluded.n;
  else
    -- A deleted workflow takes its counters along (see below); this serves the deletion of single runs.
    insert into execution_counts as c
      select r.team_id, r.workflow_id, r.status, my_slot, -count(*)
        from removed r join workflows w on w.id = r.workflow_id group by 1, 2, 3 order by 1, 2, 3
      on conflict (team_id, workflow_id, status, slot) do update set n = c.n + excluded.n;
  end if;
  return null;
end $$;
create trigger executions_counted_insert after insert on executions
  referencing new table as added for each statement execute function count_executions();
create trigger executions_counted_update after update on executions
  referencing new table as added old table as removed for each statement execute function count_executions();
create trigger executions_counted_delete after delete on executions
  referencing old table as removed for each statement execute function count_executions();

create function forget_execution_counts() returns trigger language plpgsql as $$
begin
  delete from execution_counts where workflow_id = old.id;
  return null;
end $$;
create trigger workflows_forget_counts after delete on workflows
  for each row execute function forget_execution_counts();
