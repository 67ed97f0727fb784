-- Whom to tell that an execution has ended, if whoever started it asked for that. A table of its own, like the mails:
-- processes of the release before take every kind of errand that they do not know for a DELETE.
create table callbacks (
  -- What the receiver knows the delivery by, however often it is sent.
  id uuid primary key,
  execution_id uuid not null unique references executions on delete cascade,
  team_id uuid not null,
  -- The URL and the secret of its signature, sealed.
  target bytea not null,
  -- The URL for people, without secrets.
  shown_url text not null,
  -- WAITING for the end, PENDING, then DELIVERED or FAILED.
  status text not null default 'WAITING',
  attempts integer not null default 0,
  ended_at timestamptz(3),
  due_at timestamptz(3),
  settled_at timestamptz(3),
  last_error text
);
create index callbacks_due on callbacks (team_id, due_at, id) where status = 'PENDING';

create function call_back() returns trigger language plpgsql as $$
begin
  update callbacks set status = 'PENDING', ended_at = now(), due_at = now()
    where execution_id = new.id and status = 'WAITING';
  return null;
end $$;
comment on function call_back() is 'An execution that has ended, whoever ended it, makes its callback due.';
create trigger executions_call_back after update of status on executions for each row
  when (old.status in ('PENDING', 'RUNNING') and new.status not in ('PENDING', 'RUNNING'))
  execute function call_back();
create trigger callbacks_told after update of due_at on callbacks for each row
  when (new.status = 'PENDING' and new.due_at <= now() + interval '1 millisecond')
  execute function tell_errand();
