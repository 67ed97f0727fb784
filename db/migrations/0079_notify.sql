-- Where a team wants to be told of its alerts.
create table notification_channels (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  type text not null check (type in ('EMAIL', 'SLACK', 'WEBHOOK')),
  enabled boolean not null default true,
  -- Of EMAIL. A credential may be deleted: then its deliveries fail, and say so.
  recipients text[] not null default '{}',
  credential_id uuid,
  -- Of the others: the URL as it may be shown; the whole one, which is a secret, and the secret of a webhook's signatures
  -- are sealed.
  shown_url text,
  sealed bytea,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint notification_channels_name unique (team_id, name),
  check ((type = 'EMAIL') = (sealed is null) and (sealed is null) = (shown_url is null))
);

-- What a team does by itself about an alert, or about an evaluation that scored too low.
create table playbooks (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  enabled boolean not null default true,
  conditions json not null,
  steps json not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint playbooks_name unique (team_id, name)
);

create table playbook_runs (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  playbook_id uuid not null references playbooks on delete cascade,
  notice_id uuid not null references notices on delete cascade,
  -- That of the notice.
  workflow_id uuid,
  hour timestamptz(3) not null,
  status text not null default 'PENDING' check (status in ('PENDING', 'COMPLETED', 'FAILED', 'SKIPPED', 'STOPPED')),
  reason text,
  -- The steps as they were then, and what came of those that are done, in their order.
  steps json not null,
  outcomes json not null default '[]',
  -- When it is worked on next; a process that works on it moves this on, and holds the lease.
  due_at timestamptz(3) not null default now(),
  lease uuid,
  -- How often it was taken.
  attempts integer not null default 0,
  created_at timestamptz(3) not null default now(),
  ended_at timestamptz(3),
  constraint playbook_runs_once unique (notice_id, playbook_id)
);
-- A playbook runs at most once for a workflow and an hour.
create unique index playbook_runs_hour on playbook_runs
  (playbook_id, coalesce(workflow_id, '00000000-0000-0000-0000-000000000000'), hour) where status <> 'SKIPPED';
create index playbook_runs_log on playbook_runs (playbook_id, created_at desc, id desc);
create index playbook_runs_due on playbook_runs (team_id, due_at) where status = 'PENDING';

-- What is sent of a notice: one row for each place that it goes to.
create table notification_deliveries (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  notice_id uuid not null references notices on delete cascade,
  -- `email` for the team's ADMINs, the id of a channel, or an entry of the config that names no channel.
  target text not null,
  -- No reference: the log outlives the channel.
  channel_id uuid,
  -- The playbook whose step sends it; null: the config says so.
  playbook_id uuid,
  status text not null default 'PENDING' check (status in ('PENDING', 'DELIVERED', 'FAILED')),
  attempts integer not null default 0,
  due_at timestamptz(3) not null default now(),
  lease uuid,
  -- Those who have got their mail, so that they do not get it again.
  told text[] not null default '{}',
  last_error text,
  created_at timestamptz(3) not null default now(),
  settled_at timestamptz(3),
  constraint notification_deliveries_once unique (notice_id, target)
);
create index notification_deliveries_due on notification_deliveries (team_id, due_at) where status = 'PENDING';
create index notification_deliveries_of_team on notification_deliveries (team_id, created_at desc, id desc);
create index notification_deliveries_of_channel on notification_deliveries (channel_id, created_at desc, id desc)
  where channel_id is not null;

-- What is past its time is removed with all that was made of it.
create index notices_done on notices (done_at) where done_at is not null;

alter table credential_opens drop constraint credential_opens_opener_kind_check;
alter table credential_opens add constraint credential_opens_opener_kind_check
  check (opener_kind in ('WORKFLOW', 'FORWARDER', 'GUARDRAILS', 'CHANNEL', 'REPORT', 'EVALUATION'));

-- What follows from the end of an execution, whoever writes it: its place goes to the next one, its parent is told,
-- its children end, and its workflow's error workflow starts.
create or replace function end_run() returns trigger language plpgsql as $function$
begin
  if new.gate_id is not null and old.queued_at is null then
    perform open_gate(new.gate_id, new.workflow_id);
  end if;
  if new.parent_id is not null and not new.detached then
    insert into outbox (kind, subject_id, key, due_at)
      select 'SIGNAL', id, new.parent_key, now() from executions
      where id = new.parent_id and status in ('PENDING', 'RUNNING')
    on conflict (subject_id, kind, key) do update set due_at = now();
  end if;
  if not (new.keep_inputs and new.keep_outputs) and not is_awaited(new.id, new.parent_id, new.detached) then
    perform wipe_unkept(new.id, new.keep_outputs);
  end if;
  if exists (select from executions where parent_id = new.id and not detached) then
    perform cancel_executions(array(
      select id from executions
      where parent_id = new.id and not detached and status in ('PENDING', 'RUNNING')),
      'The execution that waited for it has ended');
    perform wipe_unkept(id, keep_outputs) from executions
      where parent_id = new.id and not detached and not (keep_inputs and keep_outputs)
        and status not in ('PENDING', 'RUNNING');
  end if;
  if new.status = 'FAILED' and new.trigger not in ('ERROR', 'EVALUATION', 'PLAYBOOK') then
    insert into outbox (kind, subject_id, due_at)
      select 'ERROR', new.id, now() from workflows
      where id = new.workflow_id and settings->>'errorWorkflowId' is not null
    on conflict do nothing;
  end if;
  return null;
end $function$;
