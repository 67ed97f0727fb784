-- One way to cancel, for one execution or many. Until now cancel_run and two statements of the service said the same.

create function cancel_executions(ids uuid[], why text default null, due timestamptz default now())
  returns table (execution uuid, stands text) language plpgsql as $$
declare
  pending uuid[];
  running uuid[];
begin
  with open as (
    select id, status from executions where id = any(ids) and status in ('PENDING', 'RUNNING')
    order by id for update)
  select array_agg(id) filter (where status = 'PENDING'), array_agg(id) filter (where status = 'RUNNING')
    into pending, running from open;
  if pending is not null then
    delete from outbox where subject_id = any(pending) and kind = 'START';
    update executions set status = 'CANCELLED', completed_at = now(),
      cancel_requested_at = coalesce(cancel_requested_at, now()),
      error_message = coalesce(why, 'The execution was cancelled before it started')
      where id = any(pending);
  end if;
  if running is not null then
    -- The first to ask is the reason.
    update executions set cancel_requested_at = now(), cancel_reason = why
      where id = any(running) and cancel_requested_at is null;
  end if;
  insert into outbox (kind, subject_id, team_id, due_at)
    select 'CANCEL', id, team_id, due from executions where id = any(pending || running)
  on conflict do nothing;
  return query select id, status from executions where id = any(pending || running);
end $$;

create or replace function clear_gate(gate uuid, places integer, why text) returns void language plpgsql
set lock_timeout = '2ms' as $$
begin
  perform cancel_executions(array(select id from executions where gate_id = gate and queued_at is not null), why);
  perform cancel_executions(array(
    select id from executions where gate_id = gate and status in ('PENDING', 'RUNNING') and queued_at is null
    order by created_at, id limit greatest(0, hold_gate(gate) - places + 1)), why);
end $$;

create or replace function end_run() returns trigger language plpgsql as $$
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
    perform cancel_executions(array(
      select id from executions
      where parent_id = new.id and not detached and status in ('PENDING', 'RUNNING')),
      'The execution that waited for it has ended');
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

create or replace function leave_family() returns trigger language plpgsql as $$
begin
  if old.parent_id is not null and not old.detached then
    insert into outbox (kind, subject_id, key, due_at) values ('SIGNAL', old.parent_id, old.parent_key, now())
    on conflict (subject_id, kind, key) do update set due_at = now();
  end if;
  perform cancel_executions(array(
    select id from executions
    where parent_id = old.id and not detached and status in ('PENDING', 'RUNNING')),
    'The execution that waited for it was deleted');
  return null;
end $$;

-- Processes of the release before call it while they are replaced one by one; a later release drops it.
create or replace function cancel_run(run uuid, why text) returns void language plpgsql as $$
begin
  perform cancel_executions(array[run], why);
end $$;

-- What each function is for. db/functions.sql shows them as they are now.

comment on function cancel_executions(uuid[], text, timestamptz) is
  'Cancels those of these executions that are open. One that is PENDING ends here and now. One that is RUNNING is
cancelled through Temporal, and can from now on only end CANCELLED. `why` is its error message then, if nobody asked
in person. `due`: when the sweeper tells Temporal, unless the caller has done so. Returns what stands afterwards.';
comment on function hold_gate(uuid) is
  'Holds the gate until the transaction ends, and returns how many executions have a place in it. The count is a
statement of its own after the lock, so that it sees what the last holder has done.';
comment on function open_gate(uuid, uuid) is
  'Lets in those who have waited longest, as many as there is room for: all of them if there is no limit any more.';
comment on function clear_gate(uuid, integer, text) is
  'Makes room for one execution that replaces others: cancels those that wait, and the oldest of those that have a
place. The caller holds the gate, while the end of an execution waits for the gate with the execution''s row locked:
hence the short lock_timeout, after which the caller tries again.';
comment on function is_awaited(uuid, uuid, boolean) is
  'Whether somebody may still read the outputs of an execution that does not keep them: its parent, or the webhook
call that started it.';
comment on function wipe_outputs(uuid) is
  'Removes the outputs of an execution that does not keep them. What came to its pauses is an output too; who decided
what, and when, stays.';
comment on function leave_queue() is 'An execution that ends leaves its queue, and its input is blanked if it is not kept.';
comment on function end_run() is
  'What follows from the end of an execution, whoever writes it: its place goes to the next one, its parent is told,
its children end, and its workflow''s error workflow starts.';
comment on function leave_answer() is
  'A webhook call that no longer waits needs the outputs of its execution no more: they go if they are not kept.';
comment on function leave_family() is
  'An execution that is deleted while it is open ends for its parent and its children too.';
comment on function abandon_pauses() is 'An execution that has ended waits for nobody, whoever ended it.';
comment on function forget_given() is 'Outputs that an execution was given go with its own if they are not kept.';
comment on function own_errand() is
  'The team whose errand it is: errands are taken from one team after the other. A subject that is gone already belongs
to nobody.';
comment on function cancel_run(uuid, text) is
  'The name of cancel_executions before migration 0017, for processes of that release.';
comment on function queue_schedules() is
  'Whatever changes what is scheduled queues an errand: make Temporal''s schedules of this workflow what its row says.
At the end of the transaction, so that the order in which a workflow and its version are written does not matter. An
errand that is already queued gets a new id, so that the one who is carrying it out does not settle the new one too.';
comment on function tell_run(uuid) is
  'Notifies those who watch an execution. The own transaction id is taken first: a follower whose read misses this
transaction waits for it (db/bus.ts).';
comment on function tell_execution() is
  'Notes which transaction changed what a stream shows of an execution, and tells those who watch it.';
comment on function tell_node() is
  'The same for a node record. A projection moves last_event_id of the execution: the records that it settles need not
be told one by one.';
comment on function tell_answer() is 'A webhook call that waits is told that its answer is there.';
comment on function tell_errand() is
  'Errands that are due at once wake the sweepers; the others are carried out by the process that wrote them. Due times
are rounded to milliseconds, so `now` may lie just ahead.';
comment on function count_executions() is
  'Counts executions by team, workflow and status, in 32 slots so that writers do not wait for each other.';
comment on function forget_execution_counts() is 'A deleted workflow takes its counts along.';
comment on function audit_is_append_only() is 'Audit entries are added, and neither changed nor removed.';
