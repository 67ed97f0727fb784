-- What the end of an execution sets off is one function that calls its steps in order, instead of five triggers that
-- PostgreSQL sorts by their names. Processes of the release before call none of the functions that go here: only triggers did.

create function make_callback_due(run uuid) returns void language plpgsql as $$
begin
  update callbacks set status = 'PENDING', ended_at = now(), due_at = now()
    where execution_id = run and status = 'WAITING';
end $$;
comment on function make_callback_due is 'Makes the callback of an execution due: it tells of the end, which is known now.';

create function tell_parent(parent uuid, place text) returns void language plpgsql as $$
begin
  insert into outbox (kind, subject_id, key, due_at)
    select 'SIGNAL', id, place, now() from executions
    where id = parent and status in ('PENDING', 'RUNNING')
  on conflict (subject_id, kind, key) do update set due_at = now();
end $$;
comment on function tell_parent is 'Nudges the run of the parent, which waits for its child at a place (nodeId#iteration).';

create function end_children(run uuid) returns void language plpgsql as $$
begin
  if not exists (select from executions where parent_id = run and not detached) then
    return;
  end if;
  perform cancel_executions(array(
    select id from executions
    where parent_id = run and not detached and status in ('PENDING', 'RUNNING')),
    'The execution that waited for it has ended');
  perform wipe_unkept(id, keep_outputs) from executions
    where parent_id = run and not detached and not (keep_inputs and keep_outputs)
      and status not in ('PENDING', 'RUNNING');
end $$;
comment on function end_children is
'Cancels the children that an execution waited for. Their outputs were kept for it: they go if they are not kept.';

create function queue_error_workflow(run uuid, workflow uuid) returns void language plpgsql as $$
begin
  insert into outbox (kind, subject_id, due_at)
    select 'ERROR', run, now() from workflows
    where id = workflow and settings->>'errorWorkflowId' is not null
  on conflict do nothing;
end $$;
comment on function queue_error_workflow is 'Queues the start of the error workflow, if the workflow has one.';

create function abandon_pauses(run uuid) returns void language plpgsql as $$
begin
  update pauses set status = 'ABANDONED', settled_at = now() where execution_id = run and status = 'OPEN';
end $$;
comment on function abandon_pauses(uuid) is 'Closes the pauses of an execution that is not there any more to be answered.';

create function end_reply(run uuid) returns void language plpgsql as $$
begin
  update agent_chat_messages set due_at = now() where execution_id = run and status = 'STREAMING';
  if found then
    perform pg_notify('outbox', '');
  end if;
end $$;
comment on function end_reply(uuid) is
'Makes the reply of an execution in a chat due to be saved, and wakes the processes that save it.';

create function sample_run(run uuid, team uuid, workflow uuid, is_kept boolean) returns void language plpgsql as $$
declare
  rate integer;
begin
  select case when coalesce(w.enabled, t.enabled, false) then coalesce(w.sampling_rate, t.sampling_rate, 10) end into rate
  from (select) as one
    left join eval_configs w on w.workflow_id = workflow
    left join eval_configs t on t.team_id = team and t.workflow_id is null;
  if rate is null or sample_of(run) >= rate then
    return;
  end if;
  insert into evaluations (id, team_id, workflow_id, execution_id, status, reason, judged_at)
    values (gen_random_uuid(), team, workflow, run,
      case when is_kept then 'PENDING' else 'SKIPPED' end,
      case when not is_kept then 'NOT_KEPT' end,
      case when not is_kept then now() end)
    on conflict (execution_id) do nothing;
end $$;
comment on function sample_run(uuid, uuid, uuid, boolean) is
'Takes a run for judging, by the config of its workflow or team. One that is not kept cannot be judged.';

create function execution_ended() returns trigger language plpgsql as $$
begin
  if old.status in ('PENDING', 'RUNNING') then
    perform make_callback_due(new.id);
    if new.gate_id is not null and old.queued_at is null then
      perform open_gate(new.gate_id, new.workflow_id);
    end if;
    if new.parent_id is not null and not new.detached then
      perform tell_parent(new.parent_id, new.parent_key);
    end if;
    if not (new.keep_inputs and new.keep_outputs) and not is_awaited(new.id, new.parent_id, new.detached) then
      perform wipe_unkept(new.id, new.keep_outputs);
    end if;
    perform end_children(new.id);
    if new.status = 'FAILED' and new.trigger not in ('ERROR', 'EVALUATION', 'PLAYBOOK') then
      perform queue_error_workflow(new.id, new.workflow_id);
    end if;
    perform abandon_pauses(new.id);
    if new.trigger = 'CHAT' then
      perform end_reply(new.id);
    end if;
  end if;
  -- Also when a rebuild finds that an execution has not failed, but what ended long ago is not judged.
  if new.status = 'SUCCESS' and new.only_node is null and new.trigger not in ('EVALUATION', 'PLAYBOOK')
    and (new.completed_at < now() - interval '1 day') is not true then
    perform sample_run(new.id, new.team_id, new.workflow_id, new.keep_inputs and new.keep_outputs);
  end if;
  return null;
end $$;
comment on function execution_ended is
'Everything that follows from the end of an execution, in this order, whichever process writes the end.';

create function execution_ending() returns trigger language plpgsql as $$
begin
  new.queued_at := null;
  if not new.keep_inputs then
    new.input_data := '{}';
  end if;
  if not old.keep_outputs then
    new.given := null;
  end if;
  return new;
end $$;
comment on function execution_ending is
'An execution that ends leaves its queue. Its input, and the outputs that it was given, go if they are not kept.';

create function execution_deleted() returns trigger language plpgsql as $$
begin
  if old.status in ('PENDING', 'RUNNING') then
    if old.parent_id is not null and not old.detached then
      insert into outbox (kind, subject_id, key, due_at) values ('SIGNAL', old.parent_id, old.parent_key, now())
      on conflict (subject_id, kind, key) do update set due_at = now();
    end if;
    perform cancel_executions(array(
      select id from executions
      where parent_id = old.id and not detached and status in ('PENDING', 'RUNNING')),
      'The execution that waited for it was deleted');
  end if;
  if old.trigger = 'CHAT' then
    perform end_reply(old.id);
  end if;
  return null;
end $$;
comment on function execution_deleted is
'An execution that is deleted while it is open ends for its parent and its children too, and one of a chat for its reply.';

drop trigger executions_call_back on executions;
drop trigger executions_pauses on executions;
drop trigger executions_reply on executions;
drop trigger executions_sampled on executions;
create or replace trigger executions_ended after update of status on executions for each row
  when (new.status not in ('PENDING', 'RUNNING') and new.status <> old.status)
  execute function execution_ended();

drop trigger executions_ending_given on executions;
create or replace trigger executions_ending before update of status on executions for each row
  when (old.status in ('PENDING', 'RUNNING') and new.status not in ('PENDING', 'RUNNING')
    and (old.queued_at is not null or not old.keep_inputs or old.given is not null and not old.keep_outputs))
  execute function execution_ending();

drop trigger executions_reply_lost on executions;
create or replace trigger executions_deleted after delete on executions for each row
  when (old.status in ('PENDING', 'RUNNING') or old.trigger = 'CHAT')
  execute function execution_deleted();

drop function call_back(), end_run(), abandon_pauses(), end_reply(), sample_run(), leave_queue(), forget_given(),
  leave_family();
