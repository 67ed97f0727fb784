-- Who follows a run: a process that streams it, or waits for its end. A transaction that notifies commits alone, its
-- flush included, so only runs that somebody follows are told of. Unlogged: after a crash of PostgreSQL the processes
-- say again what they follow.
create unlogged table watches (
  execution_id uuid not null,
  watcher uuid not null,
  seen_at timestamptz(3) not null default now(),
  primary key (execution_id, watcher)
);

-- The transaction that last changed what a stream shows of the row: with the snapshots of its reads a stream knows
-- what it has told, in whatever order transactions commit. Null in rows that are older than this column.
alter table executions add column changed xid8;
alter table executions alter column changed set default pg_current_xact_id();
alter table node_executions add column changed xid8;
alter table node_executions alter column changed set default pg_current_xact_id();

-- The own transaction id comes first: a follower that this look misses waits for that transaction (db/bus.ts).
create function tell_run(run uuid) returns void language plpgsql as $$
begin
  perform pg_current_xact_id();
  if exists (select from watches where execution_id = run) then
    perform pg_notify('run', run::text);
  end if;
end $$;

create function tell_execution() returns trigger language plpgsql as $$
begin
  if (old.status, old.started_at, old.completed_at, old.error_message, old.cancel_requested_at)
    is distinct from (new.status, new.started_at, new.completed_at, new.error_message, new.cancel_requested_at) then
    new.changed := pg_current_xact_id();
  end if;
  perform tell_run(new.id);
  return new;
end $$;
-- A projection moves last_event_id: the node records that it writes need not be told of one by one.
create trigger executions_told before update on executions for each row
  when (old.last_event_id <> new.last_event_id or old.run_position <> new.run_position
    or (old.status, old.started_at, old.completed_at, old.error_message, old.cancel_requested_at)
      is distinct from (new.status, new.started_at, new.completed_at, new.error_message, new.cancel_requested_at))
  execute function tell_execution();

create function tell_node() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    new.changed := pg_current_xact_id();
  end if;
  if not new.settled then
    perform tell_run(new.execution_id);
  end if;
  return new;
end $$;
create trigger node_executions_changed before update on node_executions for each row
  when ((old.status, old.started_at, old.completed_at, old.error_message, old.retry_count)
    is distinct from (new.status, new.started_at, new.completed_at, new.error_message, new.retry_count))
  execute function tell_node();
create trigger node_executions_told after insert on node_executions for each row
  when (not new.settled) execute function tell_node();

-- Calls of webhooks that wait for what their run answers, which is sealed: the first answer counts. Gone with the call.
create table hook_answers (
  execution_id uuid primary key references executions on delete cascade,
  answer bytea
);
create function tell_answer() returns trigger language plpgsql as $$
begin
  perform tell_run(new.execution_id);
  return null;
end $$;
create trigger hook_answers_told after update on hook_answers for each row execute function tell_answer();

-- Errands that are due at once wake the sweepers; the others are carried out by who wrote them. (Due times are rounded
-- to milliseconds, so `now` may lie just ahead.)
create function tell_errand() returns trigger language plpgsql as $$
begin
  perform pg_notify('outbox', '');
  return null;
end $$;
create trigger outbox_told after insert or update of due_at on outbox for each row
  when (new.due_at <= now() + interval '1 millisecond') execute function tell_errand();
