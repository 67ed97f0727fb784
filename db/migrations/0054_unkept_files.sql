-- An execution keeps its files only if it keeps its inputs and its outputs.
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
  if new.status = 'FAILED' and new.trigger <> 'ERROR' then
    insert into outbox (kind, subject_id, due_at)
      select 'ERROR', new.id, now() from workflows
      where id = new.workflow_id and settings->>'errorWorkflowId' is not null
    on conflict do nothing;
  end if;
  return null;
end $$;

create or replace function leave_answer() returns trigger language plpgsql as $$
begin
  perform wipe_unkept(id, keep_outputs) from executions
    where id = old.execution_id and not (keep_inputs and keep_outputs) and status not in ('PENDING', 'RUNNING')
      and not is_awaited(id, parent_id, detached);
  return null;
end $$;

create function wipe_unkept(run uuid, keeps_outputs boolean) returns void language plpgsql as $$
begin
  delete from execution_files where execution_id = run;
  if not keeps_outputs then
    perform wipe_outputs(run);
    -- They hold the outputs of nodes that have sent something.
    delete from message_notes where execution_id = run;
  end if;
end $$;

comment on function wipe_unkept is 'Removes what an execution leaves behind that does not keep both its inputs and its
outputs: its files, and its outputs if it does not keep them.';
