-- A run under a limit of its workflow has a gate: UUIDv5(workflow, rendered key). `queued_at` says since when it waits
-- there for a place. A `detached` child lives on when its parent has ended. What a run does not keep is not stored
-- (outputs), or blanked at its end (its input).
alter table executions add column gate_id uuid, add column queued_at timestamptz,
  add column detached boolean not null default false,
  add column keep_inputs boolean not null default true, add column keep_outputs boolean not null default true;
create index executions_gate on executions (gate_id)
  where gate_id is not null and status in ('PENDING', 'RUNNING') and queued_at is null;
create index executions_queue on executions (gate_id, queued_at) where queued_at is not null;

-- Holds the gate until the transaction ends, and answers how many runs have a place in it. The count is a statement
-- of its own behind the lock, so that it sees what the last holder has done.
create function hold_gate(gate uuid) returns integer language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(gate::text, 0));
  return (select count(*) from executions
    where gate_id = gate and status in ('PENDING', 'RUNNING') and queued_at is null);
end $$;

-- Lets in those who have waited longest, as many as there is room for: all, where there is no limit any more.
create function open_gate(gate uuid, workflow uuid) returns void language plpgsql as $$
declare
  taken integer;
  room integer;
begin
  loop
    taken := hold_gate(gate);
    room := (select (settings->'concurrency'->>'limit')::integer from workflows where id = workflow) - taken;
    exit when room <= 0;
    with due as (
      select id from executions where gate_id = gate and queued_at is not null
      order by queued_at limit room for update),
    moved as (update executions e set queued_at = null from due where e.id = due.id returning e.id)
    insert into outbox (kind, subject_id, due_at) select 'START', id, now() from moved on conflict do nothing;
    -- Again where somebody cancelled meanwhile whom we were about to let in: the next is let in for it.
    exit when not exists (select from executions where gate_id = gate and queued_at is not null);
  end loop;
end $$;

-- What has not started ends here and now; what runs is told through Temporal, and can only end CANCELLED.
create function cancel_run(run uuid, why text) returns void language plpgsql as $$
declare
  stood text := (select status from executions where id = run for update);
begin
  if stood = 'PENDING' then
    delete from outbox where subject_id = run and kind = 'START';
    update executions set status = 'CANCELLED', completed_at = now(), error_message = why,
      cancel_requested_at = coalesce(cancel_requested_at, now()) where id = run;
  elsif stood = 'RUNNING' then
    update executions set cancel_requested_at = coalesce(cancel_requested_at, now()) where id = run;
  else
    return;
  end if;
  insert into outbox (kind, subject_id, due_at) values ('CANCEL', run, now()) on conflict do nothing;
end $$;

-- For one that takes another's place: ends who waits, and cancels as many of the oldest as must leave. The caller
-- holds the gate, for which whoever ends a run waits with the run's row locked: hence it gives up at once, to try again.
create function clear_gate(gate uuid, places integer, why text) returns void language plpgsql
set lock_timeout = '2ms' as $$
declare
  run uuid;
begin
  for run in select id from executions where gate_id = gate and queued_at is not null order by queued_at loop
    perform cancel_run(run, why);
  end loop;
  for run in select id from executions
    where gate_id = gate and status in ('PENDING', 'RUNNING') and queued_at is null
    order by created_at, id limit greatest(0, hold_gate(gate) - places + 1)
  loop
    perform cancel_run(run, why);
  end loop;
end $$;

-- Whether somebody may yet read the outputs of a run that does not keep them: its parent, or the call of its webhook.
create function is_awaited(run uuid, parent uuid, detached boolean) returns boolean language plpgsql as $$
begin
  return not detached and exists (select from executions where id = parent and status in ('PENDING', 'RUNNING'))
    or exists (select from hook_answers where execution_id = run);
end $$;

create function wipe_outputs(run uuid) returns void language plpgsql as $$
begin
  update node_executions set output = null, loop = null
    where execution_id = run and (output is not null or loop is not null);
  delete from blobs where execution_id = run;
end $$;

create function leave_queue() returns trigger language plpgsql as $$
begin
  new.queued_at := null;
  if not new.keep_inputs then
    new.input_data := '{}';
  end if;
  return new;
end $$;
create trigger executions_ending before update of status on executions for each row
  when ((old.queued_at is not null or not old.keep_inputs)
    and old.status in ('PENDING', 'RUNNING') and new.status not in ('PENDING', 'RUNNING'))
  execute function leave_queue();

-- What follows from the end of a run, whoever writes it: its place goes to the next, its parent is told, its children
-- end, and its workflow's error workflow starts.
create function end_run() returns trigger language plpgsql as $$
declare
  child uuid;
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
  if not new.keep_outputs and not is_awaited(new.id, new.parent_id, new.detached) then
    perform wipe_outputs(new.id);
  end if;
  if exists (select from executions where parent_id = new.id and not detached) then
    for child in select id from executions
      where parent_id = new.id and not detached and status in ('PENDING', 'RUNNING') order by id
    loop
      perform cancel_run(child, 'The run that waited for it has ended');
    end loop;
    perform wipe_outputs(id) from executions
      where parent_id = new.id and not detached and not keep_outputs and status not in ('PENDING', 'RUNNING');
  end if;
  if new.status = 'FAILED' and new.trigger <> 'ERROR' then
    insert into outbox (kind, subject_id, due_at)
      select 'ERROR', new.id, now() from workflows
      where id = new.workflow_id and settings->>'errorWorkflowId' is not null
    on conflict do nothing;
  end if;
  return null;
end $$;
create trigger executions_ended after update of status on executions for each row
  when (old.status in ('PENDING', 'RUNNING') and new.status not in ('PENDING', 'RUNNING'))
  execute function end_run();

create function leave_answer() returns trigger language plpgsql as $$
begin
  perform wipe_outputs(id) from executions
    where id = old.execution_id and not keep_outputs and status not in ('PENDING', 'RUNNING')
      and not is_awaited(id, parent_id, detached);
  return null;
end $$;
create trigger hook_answers_left after delete on hook_answers for each row execute function leave_answer();
