-- What waits for somebody outside, under the id of its node record: an APPROVAL for a decision, an EVENT (by `name`, or
-- by its one-time URL) for `data`. Whoever settles it moves it away from OPEN, once. A sub-workflow's row is its
-- execution. `approvers` are roles and e-mail addresses, `approver_ids` the members who had those addresses then: one that
-- is given up may be taken by another. `decisions` is [{decision, by, at, comment, form}].
create table pauses (
  id uuid primary key,
  execution_id uuid not null references executions on delete cascade,
  team_id uuid not null,
  workflow_id uuid not null,
  kind text not null check (kind in ('APPROVAL', 'EVENT')),
  node_id text not null,
  node_name text not null,
  iteration text not null,
  status text not null default 'OPEN'
    check (status in ('OPEN', 'APPROVED', 'REJECTED', 'RECEIVED', 'EXPIRED', 'ABANDONED')),
  name text,
  data json,
  message text,
  approvers text[] not null default '{}',
  approver_ids uuid[] not null default '{}',
  form json,
  required integer not null default 1,
  self_approval boolean not null default true,
  decisions json not null default '[]',
  deadline timestamptz(3),
  created_at timestamptz(3) not null default now(),
  settled_at timestamptz(3)
);
create index pauses_execution on pauses (execution_id);
create index pauses_team on pauses (team_id, created_at desc, id desc) where kind = 'APPROVAL';
create index pauses_open on pauses (team_id, created_at desc, id desc) where kind = 'APPROVAL' and status = 'OPEN';

-- A run that has ended waits for nobody, whoever ended it.
create function abandon_pauses() returns trigger language plpgsql as $$
begin
  update pauses set status = 'ABANDONED', settled_at = now() where execution_id = new.id and status = 'OPEN';
  return null;
end $$;
create trigger executions_pauses after update of status on executions for each row
  when (old.status in ('PENDING', 'RUNNING') and new.status not in ('PENDING', 'RUNNING'))
  execute function abandon_pauses();

-- A run that is deleted while it is under way ends for its parent and its children too.
create function leave_family() returns trigger language plpgsql as $$
declare
  child uuid;
begin
  if old.parent_id is not null and not old.detached then
    insert into outbox (kind, subject_id, key, due_at) values ('SIGNAL', old.parent_id, old.parent_key, now())
    on conflict (subject_id, kind, key) do update set due_at = now();
  end if;
  for child in select id from executions
    where parent_id = old.id and not detached and status in ('PENDING', 'RUNNING') order by id
  loop
    perform cancel_run(child, 'The run that waited for it was deleted');
  end loop;
  return null;
end $$;
create trigger executions_deleted after delete on executions for each row
  when (old.status in ('PENDING', 'RUNNING')) execute function leave_family();
