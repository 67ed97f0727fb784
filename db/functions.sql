-- All functions and triggers of the database as they are after the last migration, by what they are about (NOUNS in
-- db/functions.ts). Made by `npm run schema`, compared by `npm run check`: change them by a new migration, never here.

-- PEOPLE AND THEIR RIGHTS

-- Holds the team until the transaction ends, so that it is not deleted before; false if there is no such team. Acts hold
-- it together; one that changes who may do what holds it alone. It waits for the acts under way, and those that come later
-- fail (55P03) and are tried again, so that only one of them keeps a connection while it waits. An advisory lock, because
-- no other gets it once one waits for it: a stream of row locks could keep a removal waiting for ever.
CREATE OR REPLACE FUNCTION public.hold_team(team uuid, alone boolean)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
  if not (case
      when alone then pg_try_advisory_xact_lock(hashtextextended(team::text, 2))
      else pg_try_advisory_xact_lock_shared(hashtextextended(team::text, 1)) end) then
    raise exception 'the rights in the team are changing' using errcode = '55P03';
  end if;
  if alone then
    perform pg_advisory_xact_lock(hashtextextended(team::text, 1));
  end if;
  perform from teams where id = team for key share;
  return found;
end $function$;

-- The role in the team of a person who shows a session or an SDK token; null if they have none any more. Holds the team.
-- What it reads after the lock is what the last holder has left, because each statement of a volatile function has a
-- snapshot of its own.
CREATE OR REPLACE FUNCTION public.hold_right(team uuid, person uuid, session uuid, token uuid, alone boolean)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
  if not hold_team(team, alone) then
    return null;
  end if;
  if token is null then
    return (select m.role from members m join sessions s on s.user_id = m.user_id
      where m.team_id = team and m.user_id = person and s.id = session and s.expires_at > now());
  end if;
  return (select case when array_position(ranks, m.role) < array_position(ranks, t.role) then m.role else t.role end
    from members m join sdk_tokens t on t.team_id = m.team_id and t.user_id = m.user_id,
      (values (array['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN'])) as r (ranks)
    where m.team_id = team and m.user_id = person and t.id = token and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now()));
end $function$;

-- A new address is not confirmed, unless the same statement says so.
CREATE OR REPLACE FUNCTION public.doubt_email()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.email_confirmed_at := null;
  return new;
end $function$;

CREATE TRIGGER users_email_doubted BEFORE UPDATE OF email ON users FOR EACH ROW
  WHEN (((lower(old.email) <> lower(new.email)) AND (NOT (old.email_confirmed_at IS DISTINCT FROM new.email_confirmed_at))))
  EXECUTE FUNCTION doubt_email();

-- CHANGES OF WHAT PROCESSES HAVE IN MEMORY

-- Tells all processes, at the commit, what of theirs in memory is no longer true.
CREATE OR REPLACE FUNCTION public.tell_change(what text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  told integer := coalesce(nullif(current_setting('perdure.told', true), '')::integer, 0);
begin
  -- After many changes in one transaction, a single text says that anything may have changed.
  if told > 100 then
    return;
  end if;
  if told = 100 then
    what := 'everything';
  end if;
  perform set_config('perdure.told', (told + 1)::text, true);
  perform pg_notify('processes', what);
  -- Unlike a notice, an info reaches the client whatever it has set.
  if current_setting('perdure.hears', true) = 'on' then
    raise info 'perdure changed' using detail = what;
  end if;
end $function$;

-- Tells all processes that the rights of a person, with their sessions and tokens, may have changed.
CREATE OR REPLACE FUNCTION public.tell_rights()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then
    perform tell_change('rights:' || old.user_id);
  end if;
  if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.user_id <> old.user_id then
    perform tell_change('rights:' || new.user_id);
  end if;
  return null;
end $function$;

CREATE TRIGGER members_joined AFTER INSERT ON members FOR EACH ROW
  EXECUTE FUNCTION tell_rights();

CREATE TRIGGER members_rights AFTER DELETE ON members FOR EACH ROW
  EXECUTE FUNCTION tell_rights();

CREATE TRIGGER members_role AFTER UPDATE OF role ON members FOR EACH ROW
  WHEN ((new.role IS DISTINCT FROM old.role))
  EXECUTE FUNCTION tell_rights();

CREATE TRIGGER sdk_tokens_changed AFTER UPDATE OF name, token_hash, user_id, team_id ON sdk_tokens FOR EACH ROW
  EXECUTE FUNCTION tell_rights();

CREATE TRIGGER sdk_tokens_ended AFTER UPDATE OF revoked_at, expires_at, role ON sdk_tokens FOR EACH ROW
  EXECUTE FUNCTION tell_rights();

CREATE TRIGGER sdk_tokens_rights AFTER DELETE ON sdk_tokens FOR EACH ROW
  WHEN ((old.revoked_at IS NULL))
  EXECUTE FUNCTION tell_rights();

CREATE TRIGGER sessions_changed AFTER UPDATE ON sessions FOR EACH ROW
  EXECUTE FUNCTION tell_rights();

CREATE TRIGGER sessions_rights AFTER DELETE ON sessions FOR EACH ROW
  WHEN ((old.expires_at > now()))
  EXECUTE FUNCTION tell_rights();

-- Tells all processes that the name of a person has changed, or whether they are the administrator.
CREATE OR REPLACE FUNCTION public.tell_instance_rights()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform tell_change('rights:' || old.id);
  return null;
end $function$;

CREATE TRIGGER users_rights AFTER UPDATE OF instance_admin ON users FOR EACH ROW
  WHEN ((old.instance_admin AND (NOT new.instance_admin)))
  EXECUTE FUNCTION tell_instance_rights();

CREATE TRIGGER users_told AFTER UPDATE OF email, first_name, last_name, instance_admin ON users FOR EACH ROW
  WHEN (((((old.email IS DISTINCT FROM new.email) OR (old.first_name IS DISTINCT FROM new.first_name)) OR (old.last_name IS DISTINCT FROM new.last_name)) OR (old.instance_admin IS DISTINCT FROM new.instance_admin)))
  EXECUTE FUNCTION tell_instance_rights();

-- Tells all processes that a team has another plan, or is gone.
CREATE OR REPLACE FUNCTION public.tell_plan()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform tell_change('plan:' || old.id);
  return null;
end $function$;

CREATE TRIGGER teams_gone AFTER DELETE ON teams FOR EACH ROW
  EXECUTE FUNCTION tell_plan();

CREATE TRIGGER teams_plan_changed AFTER UPDATE OF plan ON teams FOR EACH ROW
  WHEN ((old.plan IS DISTINCT FROM new.plan))
  EXECUTE FUNCTION tell_plan();

-- Tells all processes that a workflow has changed, or is gone.
CREATE OR REPLACE FUNCTION public.tell_workflow()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform tell_change('workflow:' || old.id);
  return null;
end $function$;

CREATE TRIGGER workflows_changed AFTER UPDATE ON workflows FOR EACH ROW
  EXECUTE FUNCTION tell_workflow();

CREATE TRIGGER workflows_gone AFTER DELETE ON workflows FOR EACH ROW
  EXECUTE FUNCTION tell_workflow();

-- WORKFLOWS

-- Each change of what is scheduled queues an errand: make Temporal's schedules of this workflow what its row says.
-- At the end of the transaction, so that the order in which a workflow and its version are written does not matter. An
-- errand that is already queued gets a new id, so that the one who is carrying it out does not settle the new one too.
CREATE OR REPLACE FUNCTION public.queue_schedules()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' and (not old.active and not new.active
    or (old.active, old.version, old.settings::text) = (new.active, new.version, new.settings::text)) then
    return null;
  end if;
  insert into outbox (kind, subject_id)
  select 'SCHEDULE', coalesce(new.id, old.id)
  where exists (select from schedules where workflow_id = coalesce(new.id, old.id))
    or exists (select from outbox where subject_id = coalesce(new.id, old.id) and kind = 'SCHEDULE')
    or new.active and exists (
      select from workflow_versions v where v.workflow_id = new.id and v.version = new.version
        and v.nodes::text like '%"SCHEDULE_TRIGGER"%')
  on conflict (subject_id, kind, key) do update set id = default, attempts = default, due_at = default;
  return null;
end $function$;

CREATE CONSTRAINT TRIGGER workflow_schedules AFTER INSERT OR DELETE OR UPDATE OF active, version, settings ON workflows DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  EXECUTE FUNCTION queue_schedules();

-- A version that a process of the release before saves has the notes of the workflow.
CREATE OR REPLACE FUNCTION public.keep_notes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.notes := coalesce((select w.settings->'notes' from workflows w where w.id = new.workflow_id), '[]');
  return new;
end $function$;

CREATE TRIGGER workflow_versions_noted BEFORE INSERT ON workflow_versions FOR EACH ROW
  WHEN ((new.notes IS NULL))
  EXECUTE FUNCTION keep_notes();

-- Refuses a version with the number of a draft, with which a process of the release before would publish beside it.
CREATE OR REPLACE FUNCTION public.keep_drafts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if new.version <= (select last_draft from workflows where id = new.workflow_id) then
    raise unique_violation using constraint = 'workflow_versions_pkey',
      message = format('Version %s is or was a draft of the workflow', new.version);
  end if;
  return new;
end $function$;

CREATE TRIGGER workflow_versions_drafted BEFORE INSERT ON workflow_versions FOR EACH ROW
  EXECUTE FUNCTION keep_drafts();

-- Notes the version that is published when a draft begins; further saves of the draft keep it.
CREATE OR REPLACE FUNCTION public.note_draft_base()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if new.draft_version is null then
    new.draft_base := null;
  elsif old.draft_version is null then
    new.draft_base := old.version;
  end if;
  return new;
end $function$;

CREATE TRIGGER workflows_draft_begun BEFORE UPDATE OF draft_version ON workflows FOR EACH ROW
  EXECUTE FUNCTION note_draft_base();

-- A widget whose workflow is deleted is disabled, also if a cascade deletes it.
CREATE OR REPLACE FUNCTION public.disable_widget()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.enabled := false;
  new.updated_at := now();
  return new;
end $function$;

CREATE TRIGGER widgets_left BEFORE UPDATE OF workflow_id ON widgets FOR EACH ROW
  WHEN (((new.workflow_id IS NULL) AND (old.workflow_id IS NOT NULL)))
  EXECUTE FUNCTION disable_widget();

-- THE PLACES OF A WORKFLOW WITH A LIMIT

-- Holds the gate until the transaction ends, and returns how many executions have a place in it. The count is a
-- statement of its own after the lock, so that it sees what the last holder has done.
CREATE OR REPLACE FUNCTION public.hold_gate(gate uuid)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_advisory_xact_lock(hashtextextended(gate::text, 0));
  return (select count(*) from executions
    where gate_id = gate and status in ('PENDING', 'RUNNING') and queued_at is null);
end $function$;

-- Lets in those who have waited longest, as many as there is room for: all of them if there is no limit any more.
CREATE OR REPLACE FUNCTION public.open_gate(gate uuid, workflow uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- Makes room for one execution that replaces others: cancels those that wait, and the oldest of those that have a
-- place. The caller holds the gate, while the end of an execution waits for the gate with the execution's row locked:
-- hence the short lock_timeout, after which the caller tries again.
CREATE OR REPLACE FUNCTION public.clear_gate(gate uuid, places integer, why text)
 RETURNS void
 LANGUAGE plpgsql
 SET lock_timeout TO '2ms'
AS $function$
begin
  perform cancel_executions(array(select id from executions where gate_id = gate and queued_at is not null), why);
  perform cancel_executions(array(
    select id from executions where gate_id = gate and status in ('PENDING', 'RUNNING') and queued_at is null
    order by created_at, id limit greatest(0, hold_gate(gate) - places + 1)), why);
end $function$;

-- THE END OF AN EXECUTION

-- An execution that ends leaves its queue. Its input, and the outputs that it was given, go if they are not kept.
CREATE OR REPLACE FUNCTION public.execution_ending()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.queued_at := null;
  if not new.keep_inputs then
    new.input_data := '{}';
  end if;
  if not old.keep_outputs then
    new.given := null;
  end if;
  return new;
end $function$;

CREATE TRIGGER executions_ending BEFORE UPDATE OF status ON executions FOR EACH ROW
  WHEN (((old.status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text])) AND (new.status <> ALL (ARRAY['PENDING'::text, 'RUNNING'::text])) AND ((old.queued_at IS NOT NULL) OR (NOT old.keep_inputs) OR ((old.given IS NOT NULL) AND (NOT old.keep_outputs)))))
  EXECUTE FUNCTION execution_ending();

-- Everything that follows from the end of an execution, in this order, whichever process writes the end.
CREATE OR REPLACE FUNCTION public.execution_ended()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
    if new.status = 'FAILED' and not new.draft and new.trigger not in ('ERROR', 'EVALUATION', 'PLAYBOOK') then
      perform queue_error_workflow(new.id, new.workflow_id);
    end if;
    perform abandon_pauses(new.id);
    if new.trigger = 'CHAT' then
      perform end_reply(new.id);
    end if;
  end if;
  -- Also when a rebuild finds that an execution has not failed, but what ended long ago is not judged.
  if new.status = 'SUCCESS' and new.only_node is null and not new.draft and new.trigger not in ('EVALUATION', 'PLAYBOOK')
    and (new.completed_at < now() - interval '1 day') is not true then
    perform sample_run(new.id, new.team_id, new.workflow_id, new.keep_inputs and new.keep_outputs);
  end if;
  return null;
end $function$;

CREATE TRIGGER executions_ended AFTER UPDATE OF status ON executions FOR EACH ROW
  WHEN (((new.status <> ALL (ARRAY['PENDING'::text, 'RUNNING'::text])) AND (new.status <> old.status)))
  EXECUTE FUNCTION execution_ended();

-- Makes the callback of an execution due: it tells of the end, which is known now.
CREATE OR REPLACE FUNCTION public.make_callback_due(run uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  update callbacks set status = 'PENDING', ended_at = now(), due_at = now()
    where execution_id = run and status = 'WAITING';
end $function$;

-- Nudges the run of the parent, which waits for its child at a place (nodeId#iteration).
CREATE OR REPLACE FUNCTION public.tell_parent(parent uuid, place text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into outbox (kind, subject_id, key, due_at)
    select 'SIGNAL', id, place, now() from executions
    where id = parent and status in ('PENDING', 'RUNNING')
  on conflict (subject_id, kind, key) do update set due_at = now();
end $function$;

-- Cancels the children that an execution waited for. Their outputs were kept for it: they go if they are not kept.
CREATE OR REPLACE FUNCTION public.end_children(run uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- Queues the start of the error workflow, if the workflow has one.
CREATE OR REPLACE FUNCTION public.queue_error_workflow(run uuid, workflow uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into outbox (kind, subject_id, due_at)
    select 'ERROR', run, now() from workflows
    where id = workflow and settings->>'errorWorkflowId' is not null
  on conflict do nothing;
end $function$;

-- Closes the pauses of an execution that is not there any more to be answered.
CREATE OR REPLACE FUNCTION public.abandon_pauses(run uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  update pauses set status = 'ABANDONED', settled_at = now() where execution_id = run and status = 'OPEN';
end $function$;

-- Makes the reply of an execution in a chat due to be saved, and wakes the processes that save it.
CREATE OR REPLACE FUNCTION public.end_reply(run uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  update agent_chat_messages set due_at = now() where execution_id = run and status = 'STREAMING';
  if found then
    perform pg_notify('outbox', '');
  end if;
end $function$;

-- Takes a run for judging, by the config of its workflow or team. One that is not kept cannot be judged.
CREATE OR REPLACE FUNCTION public.sample_run(run uuid, team uuid, workflow uuid, is_kept boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- The place of a run among 100, the same for ever: it is judged at rates above it.
CREATE OR REPLACE FUNCTION public.sample_of(run uuid)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select (('x' || substr(md5(run::text), 1, 8))::bit(32)::bigint % 100)::integer
$function$;

-- An execution that is deleted while it is open ends for its parent and its children too, and one of a chat for its reply.
CREATE OR REPLACE FUNCTION public.execution_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE TRIGGER executions_deleted AFTER DELETE ON executions FOR EACH ROW
  WHEN (((old.status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text])) OR (old.trigger = 'CHAT'::text)))
  EXECUTE FUNCTION execution_deleted();

-- CANCELLING EXECUTIONS

-- Cancels those of these executions that are open. One that is PENDING ends here and now. One that is RUNNING is
-- cancelled through Temporal, and can from now on only end CANCELLED. `why` is its error message then, if no person asked
-- for it. `due`: when the sweeper tells Temporal, unless the caller has done so. Returns the statuses afterwards.
CREATE OR REPLACE FUNCTION public.cancel_executions(ids uuid[], why text DEFAULT NULL::text, due timestamp with time zone DEFAULT now())
 RETURNS TABLE(execution uuid, stands text)
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- The name of cancel_executions before migration 0017, for processes of that release.
CREATE OR REPLACE FUNCTION public.cancel_run(run uuid, why text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  perform cancel_executions(array[run], why);
end $function$;

-- WHAT EXECUTIONS DO NOT KEEP

-- Whether the outputs of an execution that does not keep them may still be read: by its parent, the webhook call that
-- started it, or the process that saves its reply in a chat.
CREATE OR REPLACE FUNCTION public.is_awaited(run uuid, parent uuid, detached boolean)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
  return not detached and exists (select from executions where id = parent and status in ('PENDING', 'RUNNING'))
    or exists (select from hook_answers where execution_id = run)
    or exists (select from agent_chat_messages where execution_id = run and status = 'STREAMING');
end $function$;

-- Removes what an execution leaves behind that does not keep both its inputs and its
-- outputs: its files, and its outputs if it does not keep them.
CREATE OR REPLACE FUNCTION public.wipe_unkept(run uuid, keeps_outputs boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  delete from execution_files where execution_id = run;
  if not keeps_outputs then
    perform wipe_outputs(run);
    -- They hold the outputs of nodes that have sent something, and what nodes were answered.
    delete from message_notes where execution_id = run;
    delete from request_pages where execution_id = run;
  end if;
end $function$;

-- Removes the outputs of an execution that does not keep them. What came to its pauses is an output too; who decided
-- what, and when, stays.
CREATE OR REPLACE FUNCTION public.wipe_outputs(run uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  update node_executions set output = null, loop = null, notes = null, agent = null
    where execution_id = run
      and (output is not null or loop is not null or notes is not null or agent is not null);
  delete from blobs where execution_id = run;
  update pauses set data = null, decisions = (
      select coalesce(json_agg(json_build_object('decision', d->'decision', 'by', d->'by', 'at', d->'at',
        'comment', null, 'form', null)), '[]') from json_array_elements(decisions) d)
    where execution_id = run and (data is not null or json_array_length(decisions) > 0);
end $function$;

-- A webhook call that no longer waits needs the outputs of its execution no more: they go if they are not kept.
CREATE OR REPLACE FUNCTION public.leave_answer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform wipe_unkept(id, keep_outputs) from executions
    where id = old.execution_id and not (keep_inputs and keep_outputs) and status not in ('PENDING', 'RUNNING')
      and not is_awaited(id, parent_id, detached);
  return null;
end $function$;

CREATE TRIGGER hook_answers_left AFTER DELETE ON hook_answers FOR EACH ROW
  EXECUTE FUNCTION leave_answer();

-- A reply that is saved, or gone, needs the outputs of its execution no more: they go if they are not kept. Those
-- who stream it are told.
CREATE OR REPLACE FUNCTION public.leave_reply()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform wipe_unkept(id, keep_outputs) from executions
    where id = old.execution_id and not (keep_inputs and keep_outputs) and status not in ('PENDING', 'RUNNING')
      and not is_awaited(id, parent_id, detached);
  perform tell_run(old.execution_id);
  return null;
end $function$;

CREATE TRIGGER agent_chat_messages_gone AFTER DELETE ON agent_chat_messages FOR EACH ROW
  WHEN ((old.role = 'assistant'::text))
  EXECUTE FUNCTION leave_reply();

CREATE TRIGGER agent_chat_messages_settled AFTER UPDATE OF status ON agent_chat_messages FOR EACH ROW
  WHEN (((old.status = 'STREAMING'::text) AND (new.status <> 'STREAMING'::text)))
  EXECUTE FUNCTION leave_reply();

-- THOSE WHO WATCH AN EXECUTION

-- Notifies those who watch an execution. The own transaction id is taken first: a follower whose read misses this
-- transaction waits for it (db/bus.ts).
CREATE OR REPLACE FUNCTION public.tell_run(run uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_current_xact_id();
  if exists (select from watches where execution_id = run) then
    perform pg_notify('run', run::text);
  end if;
end $function$;

-- Notes which transaction changed what a stream shows of an execution, and tells those who watch it.
CREATE OR REPLACE FUNCTION public.tell_execution()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if (old.status, old.started_at, old.completed_at, old.error_message, old.cancel_requested_at)
    is distinct from (new.status, new.started_at, new.completed_at, new.error_message, new.cancel_requested_at) then
    new.changed := pg_current_xact_id();
  end if;
  perform tell_run(new.id);
  return new;
end $function$;

CREATE TRIGGER executions_told BEFORE UPDATE ON executions FOR EACH ROW
  WHEN (((old.last_event_id <> new.last_event_id) OR (old.run_position <> new.run_position) OR (((((old.status IS DISTINCT FROM new.status) OR (old.started_at IS DISTINCT FROM new.started_at)) OR (old.completed_at IS DISTINCT FROM new.completed_at)) OR (old.error_message IS DISTINCT FROM new.error_message)) OR (old.cancel_requested_at IS DISTINCT FROM new.cancel_requested_at))))
  EXECUTE FUNCTION tell_execution();

-- The same for a node record. A projection moves last_event_id of the execution: the records that it settles need not
-- be told one by one.
CREATE OR REPLACE FUNCTION public.tell_node()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' then
    new.changed := pg_current_xact_id();
  end if;
  if not new.settled then
    perform tell_run(new.execution_id);
  end if;
  return new;
end $function$;

CREATE TRIGGER node_executions_changed BEFORE UPDATE ON node_executions FOR EACH ROW
  WHEN (((((((((old.status IS DISTINCT FROM new.status) OR (old.started_at IS DISTINCT FROM new.started_at)) OR (old.completed_at IS DISTINCT FROM new.completed_at)) OR (old.error_message IS DISTINCT FROM new.error_message)) OR (old.retry_count IS DISTINCT FROM new.retry_count)) OR (old.next_attempt_at IS DISTINCT FROM new.next_attempt_at)) OR (old.waiting_until IS DISTINCT FROM new.waiting_until)) OR (old.item_count IS DISTINCT FROM new.item_count)))
  EXECUTE FUNCTION tell_node();

CREATE TRIGGER node_executions_told AFTER INSERT ON node_executions FOR EACH ROW
  WHEN ((NOT new.settled))
  EXECUTE FUNCTION tell_node();

-- A webhook call that waits is told that its answer is there.
CREATE OR REPLACE FUNCTION public.tell_answer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform tell_run(new.execution_id);
  return null;
end $function$;

CREATE TRIGGER hook_answers_told AFTER UPDATE ON hook_answers FOR EACH ROW
  EXECUTE FUNCTION tell_answer();

-- COUNTS OF EXECUTIONS

-- Counts executions by team, workflow and status, in 32 slots so that writers do not wait for each other; those that were
-- created on a day that is over also by that day.
CREATE OR REPLACE FUNCTION public.count_executions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  my_slot integer := pg_backend_pid() % 32;
  noted timestamptz := (select noted_until from execution_days_kept);
begin
  if tg_op = 'INSERT' then
    insert into execution_counts as c
      select team_id, workflow_id, status, my_slot, count(*) from added group by 1, 2, 3 order by 1, 2, 3
      on conflict (team_id, workflow_id, status, slot) do update set n = c.n + excluded.n;
    if exists (select from added where created_at < noted) then
      insert into execution_days as c
        select owner, day, status, my_slot, count(*) from (
          select unnest(array[team_id, workflow_id]) as owner, (created_at at time zone 'UTC')::date as day, status
          from added where created_at < noted
        ) days group by 1, 2, 3 order by 1, 2, 3
        on conflict (owner_id, day, status, slot) do update set n = c.n + excluded.n;
    end if;
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
    if exists (select from added where created_at < noted) then
      insert into execution_days as c
        select owner, day, status, my_slot, sum(d) from (
          select unnest(array[a.team_id, a.workflow_id]) as owner, (a.created_at at time zone 'UTC')::date as day,
              a.status, 1 as d
            from added a join removed r using (id) where a.status <> r.status and a.created_at < noted
          union all
          select unnest(array[r.team_id, r.workflow_id]), (r.created_at at time zone 'UTC')::date, r.status, -1
            from added a join removed r using (id) where a.status <> r.status and r.created_at < noted
        ) moves group by 1, 2, 3 having sum(d) <> 0 order by 1, 2, 3
        on conflict (owner_id, day, status, slot) do update set n = c.n + excluded.n;
    end if;
  else
    -- A deleted workflow takes its counters along (see below); this serves the deletion of single runs.
    insert into execution_counts as c
      select r.team_id, r.workflow_id, r.status, my_slot, -count(*)
        from removed r join workflows w on w.id = r.workflow_id group by 1, 2, 3 order by 1, 2, 3
      on conflict (team_id, workflow_id, status, slot) do update set n = c.n + excluded.n;
    if exists (select from removed where created_at < noted) then
      insert into execution_days as c
        select owner, day, status, my_slot, -count(*) from (
          select unnest(array[team_id, workflow_id]) as owner, (created_at at time zone 'UTC')::date as day, status
          from removed where created_at < noted
        ) days
        where exists (select from workflows w where w.id = owner) or exists (select from teams t where t.id = owner)
        group by 1, 2, 3 order by 1, 2, 3
        on conflict (owner_id, day, status, slot) do update set n = c.n + excluded.n;
    end if;
  end if;
  return null;
end $function$;

CREATE TRIGGER executions_counted_delete AFTER DELETE ON executions REFERENCING OLD TABLE AS removed FOR EACH STATEMENT
  EXECUTE FUNCTION count_executions();

CREATE TRIGGER executions_counted_insert AFTER INSERT ON executions REFERENCING NEW TABLE AS added FOR EACH STATEMENT
  EXECUTE FUNCTION count_executions();

CREATE TRIGGER executions_counted_update AFTER UPDATE ON executions REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT
  EXECUTE FUNCTION count_executions();

-- A deleted workflow takes its counts along.
CREATE OR REPLACE FUNCTION public.forget_execution_counts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from execution_counts where workflow_id = old.id;
  delete from execution_days where owner_id = old.id;
  return null;
end $function$;

CREATE TRIGGER teams_forget_counts AFTER DELETE ON teams FOR EACH ROW
  EXECUTE FUNCTION forget_execution_counts();

CREATE TRIGGER workflows_forget_counts AFTER DELETE ON workflows FOR EACH ROW
  EXECUTE FUNCTION forget_execution_counts();

-- HOURS OF EXECUTIONS

-- Counts an execution anew that has ended or changed after its hour may have been folded, which is 15 minutes after the
-- end of the hour at the earliest.
CREATE OR REPLACE FUNCTION public.execution_hour_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  folded timestamptz;
begin
  perform pg_advisory_xact_lock(7226077, hashtext(new.team_id::text));
  select until into folded from execution_hour_folds where team_id = new.team_id;
  if tg_op = 'UPDATE' and old.completed_at < folded and is_counted(old) then
    perform add_execution_hour(old, -1);
  end if;
  if new.completed_at < folded and is_counted(new) then
    perform add_execution_hour(new, 1);
  end if;
  return null;
end $function$;

CREATE TRIGGER executions_hours_changed AFTER UPDATE OF status, started_at, completed_at ON executions FOR EACH ROW
  WHEN (((LEAST(old.completed_at, new.completed_at) < (now() - '00:05:00'::interval)) AND (((old.status IS DISTINCT FROM new.status) OR (old.started_at IS DISTINCT FROM new.started_at)) OR (old.completed_at IS DISTINCT FROM new.completed_at))))
  EXECUTE FUNCTION execution_hour_changed();

CREATE TRIGGER executions_hours_inserted AFTER INSERT ON executions FOR EACH ROW
  WHEN ((new.completed_at < (now() - '00:05:00'::interval)))
  EXECUTE FUNCTION execution_hour_changed();

-- Counts an execution that is deleted before its hour is folded; later it is in the sums already, and stays there. Before
-- the deletion, because its node records go along, which know of retries.
CREATE OR REPLACE FUNCTION public.execution_hour_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if not is_counted(old)
    or exists (select from execution_hour_folds where team_id = old.team_id and until > old.completed_at) then
    return old;
  end if;
  perform pg_advisory_xact_lock(7226077, hashtext(old.team_id::text));
  if not exists (select from execution_hour_folds where team_id = old.team_id and until > old.completed_at)
    and exists (select from teams where id = old.team_id) then
    perform add_execution_hour(old, 1);
  end if;
  return old;
end $function$;

CREATE TRIGGER executions_hours_deleted BEFORE DELETE ON executions FOR EACH ROW
  WHEN ((old.completed_at IS NOT NULL))
  EXECUTE FUNCTION execution_hour_deleted();

-- Adds an execution to its hour, or with -1 takes it away. The caller holds the lock of folding.
CREATE OR REPLACE FUNCTION public.add_execution_hour(e executions, sign integer)
 RETURNS void
 LANGUAGE sql
AS $function$
  insert into execution_hours as h (team_id, workflow_id, hour, ended, failed, cancelled, retries, durations)
  select e.team_id, workflow, date_trunc('hour', e.completed_at, 'UTC'), sign, sign * (e.status = 'FAILED')::integer,
    sign * (e.status = 'CANCELLED')::integer,
    sign * (select coalesce(sum(retry_count), 0)::integer from node_executions where execution_id = e.id),
    (select array_agg(sign * n order by place)
      from unnest(count_durations(array[duration_bucket(e.started_at, e.completed_at)])) with ordinality as u(n, place))
  from unnest(array[e.workflow_id, '00000000-0000-0000-0000-000000000000']) workflow order by workflow
  on conflict (team_id, workflow_id, hour) do update set ended = h.ended + excluded.ended,
    failed = h.failed + excluded.failed, cancelled = h.cancelled + excluded.cancelled,
    retries = h.retries + excluded.retries, durations = add_durations(h.durations, excluded.durations)
$function$;

-- Whether an execution has ended, and is one of those that execution_hours tell of.
CREATE OR REPLACE FUNCTION public.is_counted(e executions)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select e.completed_at is not null and e.status in ('SUCCESS', 'FAILED', 'CANCELLED')
    and e.trigger not in ('EVALUATION', 'PLAYBOOK') and not e.draft
$function$;

-- Milliseconds at which the buckets of durations begin, but for the first one; DURATION_BOUNDS in db/monitoring/executionhours.ts.
CREATE OR REPLACE FUNCTION public.duration_bounds()
 RETURNS bigint[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select array_agg(round(10 * 1.25::numeric ^ k)::bigint order by k) from generate_series(0, 86) k
$function$;

-- The bucket of an execution, from 0. Null if it has never begun.
CREATE OR REPLACE FUNCTION public.duration_bucket(started timestamp with time zone, completed timestamp with time zone)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select case when started <= completed
    then width_bucket(round(extract(epoch from completed - started) * 1000)::bigint, duration_bounds())
    when started is not null then 0 end
$function$;

-- How many of a list are in each bucket.
CREATE OR REPLACE FUNCTION public.count_durations(buckets integer[])
 RETURNS integer[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select array_agg(coalesce(n, 0) order by bucket) from generate_series(0, array_length(duration_bounds(), 1)) bucket
  left join (select b as bucket, count(*)::integer as n from unnest(buckets) b group by b) found using (bucket)
$function$;

-- Adds two lists of counts, bucket by bucket.
CREATE OR REPLACE FUNCTION public.add_durations(a integer[], b integer[])
 RETURNS integer[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select array_agg(x + y order by n) from unnest(a, b) with ordinality as u(x, y, n)
$function$;

-- A deleted team takes its hours along. A process that folds them meanwhile is waited for.
CREATE OR REPLACE FUNCTION public.forget_execution_hours()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_advisory_xact_lock(7226077, hashtext(old.id::text));
  delete from execution_hours where team_id = old.id;
  delete from execution_hour_folds where team_id = old.id;
  return null;
end $function$;

CREATE TRIGGER teams_hours_deleted AFTER DELETE ON teams FOR EACH ROW
  EXECUTE FUNCTION forget_execution_hours();

-- HOURS OF MODEL CALLS

-- A call of an hour that may be folded has changed. An hour is folded 15 minutes after its end at the earliest.
CREATE OR REPLACE FUNCTION public.model_call_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then perform unfold_model_calls(old.team_id, old.created_at); end if;
  if tg_op <> 'DELETE' then perform unfold_model_calls(new.team_id, new.created_at); end if;
  return null;
end $function$;

CREATE TRIGGER model_calls_deleted AFTER DELETE ON model_calls FOR EACH ROW
  WHEN ((old.created_at < (now() - '00:05:00'::interval)))
  EXECUTE FUNCTION model_call_changed();

CREATE TRIGGER model_calls_inserted AFTER INSERT ON model_calls FOR EACH ROW
  WHEN (((new.created_at < (now() - '00:05:00'::interval)) AND (new.service IS NULL)))
  EXECUTE FUNCTION model_call_changed();

CREATE TRIGGER model_calls_updated AFTER UPDATE ON model_calls FOR EACH ROW
  WHEN ((LEAST(old.created_at, new.created_at) < (now() - '00:05:00'::interval)))
  EXECUTE FUNCTION model_call_changed();

-- Takes the sums from the hour of a call on away, because it has changed: they are folded again.
CREATE OR REPLACE FUNCTION public.unfold_model_calls(team uuid, at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  begun constant timestamptz := date_trunc('hour', at, 'UTC');
  begun_day constant timestamptz := date_trunc('day', at, 'UTC');
begin
  -- Whoever folds holds it too: what is folded meanwhile is seen by the statements below.
  perform pg_advisory_xact_lock(7226061, hashtext(team::text));
  update model_call_folds set until = begun,
    nodes_until = case when nodes_until > begun then begun else nodes_until end,
    days_until = case when days_until > begun_day then begun_day else days_until end
  where team_id = team and until > begun;
  if found then
    delete from model_call_hours where team_id = team and hour >= begun;
    delete from model_call_hour_runs where team_id = team and hour >= begun;
    delete from model_call_node_hours where team_id = team and hour >= begun;
    delete from model_call_days where team_id = team and day >= begun_day;
    delete from model_call_node_days where team_id = team and day >= begun_day;
  end if;
end $function$;

-- Keeps the sums of all workflows of a team in each hour. Those who write hours hold the lock of the team's folds.
CREATE OR REPLACE FUNCTION public.sum_model_call_hours()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    insert into model_call_team_hours as t (team_id, hour, provider, model, calls, unpriced, priced, input, output, cached, reasoning, cost, starts, firsts)
    select team_id, hour, provider, model, sum(sign * calls) as calls, sum(sign * unpriced) as unpriced, sum(sign * priced) as priced, sum(sign * input) as input,
      sum(sign * output) as output, sum(sign * cached) as cached, sum(sign * reasoning) as reasoning, sum(sign * cost) as cost,
      sum(sign * starts) as starts, sum(sign * firsts) as firsts
    from (select 1 as sign, a.* from added a) changed
    group by team_id, hour, provider, model order by team_id, hour, provider, model
    on conflict (team_id, hour, provider, model) do update set calls = t.calls + excluded.calls, unpriced = t.unpriced + excluded.unpriced, priced = t.priced + excluded.priced, input = t.input + excluded.input,
      output = t.output + excluded.output, cached = t.cached + excluded.cached, reasoning = t.reasoning + excluded.reasoning, cost = t.cost + excluded.cost,
      starts = t.starts + excluded.starts, firsts = t.firsts + excluded.firsts;
  elsif tg_op = 'DELETE' then
    insert into model_call_team_hours as t (team_id, hour, provider, model, calls, unpriced, priced, input, output, cached, reasoning, cost, starts, firsts)
    select team_id, hour, provider, model, sum(sign * calls) as calls, sum(sign * unpriced) as unpriced, sum(sign * priced) as priced, sum(sign * input) as input,
      sum(sign * output) as output, sum(sign * cached) as cached, sum(sign * reasoning) as reasoning, sum(sign * cost) as cost,
      sum(sign * starts) as starts, sum(sign * firsts) as firsts
    from (select -1 as sign, r.* from removed r) changed
    group by team_id, hour, provider, model order by team_id, hour, provider, model
    on conflict (team_id, hour, provider, model) do update set calls = t.calls + excluded.calls, unpriced = t.unpriced + excluded.unpriced, priced = t.priced + excluded.priced, input = t.input + excluded.input,
      output = t.output + excluded.output, cached = t.cached + excluded.cached, reasoning = t.reasoning + excluded.reasoning, cost = t.cost + excluded.cost,
      starts = t.starts + excluded.starts, firsts = t.firsts + excluded.firsts;
    delete from model_call_team_hours t using (select distinct team_id, hour from removed) r
      where t.team_id = r.team_id and t.hour = r.hour and t.calls = 0;
  else
    insert into model_call_team_hours as t (team_id, hour, provider, model, calls, unpriced, priced, input, output, cached, reasoning, cost, starts, firsts)
    select team_id, hour, provider, model, sum(sign * calls) as calls, sum(sign * unpriced) as unpriced, sum(sign * priced) as priced, sum(sign * input) as input,
      sum(sign * output) as output, sum(sign * cached) as cached, sum(sign * reasoning) as reasoning, sum(sign * cost) as cost,
      sum(sign * starts) as starts, sum(sign * firsts) as firsts
    from (select 1 as sign, a.* from added a union all select -1, r.* from removed r) changed
    group by team_id, hour, provider, model order by team_id, hour, provider, model
    on conflict (team_id, hour, provider, model) do update set calls = t.calls + excluded.calls, unpriced = t.unpriced + excluded.unpriced, priced = t.priced + excluded.priced, input = t.input + excluded.input,
      output = t.output + excluded.output, cached = t.cached + excluded.cached, reasoning = t.reasoning + excluded.reasoning, cost = t.cost + excluded.cost,
      starts = t.starts + excluded.starts, firsts = t.firsts + excluded.firsts;
    delete from model_call_team_hours t using (select distinct team_id, hour from removed) r
      where t.team_id = r.team_id and t.hour = r.hour and t.calls = 0;
  end if;
  return null;
end $function$;

CREATE TRIGGER model_call_hours_deleted AFTER DELETE ON model_call_hours REFERENCING OLD TABLE AS removed FOR EACH STATEMENT
  EXECUTE FUNCTION sum_model_call_hours();

CREATE TRIGGER model_call_hours_inserted AFTER INSERT ON model_call_hours REFERENCING NEW TABLE AS added FOR EACH STATEMENT
  EXECUTE FUNCTION sum_model_call_hours();

CREATE TRIGGER model_call_hours_updated AFTER UPDATE ON model_call_hours REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT
  EXECUTE FUNCTION sum_model_call_hours();

-- ERRANDS

-- The team whose errand it is: errands are taken from one team after the other. A subject that is gone already has none.
CREATE OR REPLACE FUNCTION public.own_errand()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.team_id := coalesce((select team_id from executions where id = new.subject_id),
    (select team_id from workflows where id = new.subject_id), new.team_id);
  return new;
end $function$;

CREATE TRIGGER outbox_owned BEFORE INSERT ON outbox FOR EACH ROW
  WHEN ((new.team_id = '00000000-0000-0000-0000-000000000000'::uuid))
  EXECUTE FUNCTION own_errand();

-- Errands that are due at once wake the sweepers; the others are carried out by the process that wrote them. Due times
-- are rounded to milliseconds, so `now` may lie just ahead.
CREATE OR REPLACE FUNCTION public.tell_errand()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_notify('outbox', '');
  return null;
end $function$;

CREATE TRIGGER callbacks_told AFTER UPDATE OF due_at ON callbacks FOR EACH ROW
  WHEN (((new.status = 'PENDING'::text) AND (new.due_at <= (now() + '00:00:00.001'::interval))))
  EXECUTE FUNCTION tell_errand();

CREATE TRIGGER mails_told AFTER INSERT ON mails FOR EACH ROW
  EXECUTE FUNCTION tell_errand();

CREATE TRIGGER outbox_told AFTER INSERT OR UPDATE OF due_at ON outbox FOR EACH ROW
  WHEN ((new.due_at <= (now() + '00:00:00.001'::interval)))
  EXECUTE FUNCTION tell_errand();

-- FILES

-- A file whose last copy goes can be read no more. The row locks keep a copy that is
-- made at this moment from being missed.
CREATE OR REPLACE FUNCTION public.count_file_copies()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    update stored_files set copies = copies + 1 where id = new.id and not removed;
    if not found then
      raise exception 'the file has been removed' using errcode = '23503';
    end if;
  else
    update stored_files set copies = copies - 1, removed = copies = 1, touched_at = now() where id = old.id;
  end if;
  return null;
end $function$;

CREATE TRIGGER execution_files_counted AFTER INSERT OR DELETE ON execution_files FOR EACH ROW
  EXECUTE FUNCTION count_file_copies();

-- Keeps the sum of what the files of a team take up. Who adds to it holds the sum
-- until the end of the transaction, and compares it with what the team may have.
CREATE OR REPLACE FUNCTION public.count_file_bytes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  before bigint := case when tg_op = 'INSERT' or old.removed then 0 else old.bytes end;
  after bigint := case when tg_op = 'DELETE' or new.removed then 0 else new.bytes end;
  team uuid := case when tg_op = 'INSERT' then new.team_id else old.team_id end;
begin
  if before = after then
    return null;
  end if;
  update file_usage set bytes = bytes + after - before where team_id = team;
  if not found and after > before then
    insert into file_usage as u (team_id, bytes) values (team, after - before)
    on conflict (team_id) do update set bytes = u.bytes + excluded.bytes;
  end if;
  return null;
end $function$;

CREATE TRIGGER stored_files_counted AFTER INSERT OR DELETE OR UPDATE OF bytes, removed ON stored_files FOR EACH ROW
  EXECUTE FUNCTION count_file_bytes();

-- CHAT

-- The chunks of a reply that is saved, or gone, are needed no more.
CREATE OR REPLACE FUNCTION public.drop_chunks()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from agent_chat_chunks where execution_id = old.execution_id;
  return null;
end $function$;

CREATE TRIGGER agent_chat_messages_dropped AFTER DELETE ON agent_chat_messages FOR EACH ROW
  WHEN ((old.role = 'assistant'::text))
  EXECUTE FUNCTION drop_chunks();

CREATE TRIGGER agent_chat_messages_saved AFTER UPDATE OF status ON agent_chat_messages FOR EACH ROW
  WHEN (((old.status = 'STREAMING'::text) AND (new.status <> 'STREAMING'::text)))
  EXECUTE FUNCTION drop_chunks();

-- The rest of the executions of a chat goes with it, also if a cascade deletes it.
CREATE OR REPLACE FUNCTION public.purge_session()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into agent_chat_purges (session_id) values (old.id) on conflict do nothing;
  return null;
end $function$;

CREATE TRIGGER agent_chat_sessions_gone AFTER DELETE ON agent_chat_sessions FOR EACH ROW
  EXECUTE FUNCTION purge_session();

-- AUDIT ENTRIES

-- Audit entries are added, and neither changed nor removed.
CREATE OR REPLACE FUNCTION public.audit_is_append_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'audit entries cannot be altered or removed' using errcode = 'insufficient_privilege';
end $function$;

CREATE TRIGGER audit_anchors_append_only BEFORE DELETE OR UPDATE ON audit_anchors FOR EACH ROW
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_anchors_no_truncate BEFORE TRUNCATE ON audit_anchors FOR EACH STATEMENT
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_checkpoint_counts_no_truncate BEFORE TRUNCATE ON audit_checkpoint_counts FOR EACH STATEMENT
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_checkpoint_counts_stay BEFORE DELETE ON audit_checkpoint_counts FOR EACH ROW
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_checkpoints_append_only BEFORE DELETE OR UPDATE ON audit_checkpoints FOR EACH ROW
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_checkpoints_no_truncate BEFORE TRUNCATE ON audit_checkpoints FOR EACH STATEMENT
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_entries_no_truncate BEFORE TRUNCATE ON audit_entries FOR EACH STATEMENT
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_public_keys_append_only BEFORE DELETE OR UPDATE OF key_id, public_key, created_at ON audit_public_keys FOR EACH ROW
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_public_keys_no_truncate BEFORE TRUNCATE ON audit_public_keys FOR EACH STATEMENT
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_unsigned_append_only BEFORE DELETE OR UPDATE ON audit_unsigned FOR EACH ROW
  EXECUTE FUNCTION audit_is_append_only();

CREATE TRIGGER audit_unsigned_no_truncate BEFORE TRUNCATE ON audit_unsigned FOR EACH STATEMENT
  EXECUTE FUNCTION audit_is_append_only();

-- Audit entries are added, and not changed; those up to an anchor of their chain can be removed once they are 30 days
-- old, and what is personal about one can be erased.
CREATE OR REPLACE FUNCTION public.audit_keeps_entries()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  kept audit_entries;
begin
  if tg_op = 'DELETE' and old.ts < now() - interval '720 hours' and exists (
    select from audit_anchors where team_id = old.team_id and base_seq >= old.seq) then
    return old;
  end if;
  if tg_op = 'UPDATE' and old.v = 2 and old.details is not null
    and old.action not in ('AUDIT_DETAILS_ERASED', 'AUDIT_PURGED', 'AUDIT_REOPENED') then
    kept := old;
    kept.actor_name := null;
    kept.src_ip := null;
    kept.user_agent := null;
    kept.details := null;
    kept.details_salt := null;
    if new::text = kept::text then
      return new;
    end if;
  end if;
  raise exception 'audit entries cannot be altered or removed' using errcode = 'insufficient_privilege';
end $function$;

CREATE TRIGGER audit_entries_append_only BEFORE DELETE OR UPDATE ON audit_entries FOR EACH ROW
  EXECUTE FUNCTION audit_keeps_entries();

-- An anchor is for entries that are older than 30 days, by the clock of the database, and for a purge that is an entry.
CREATE OR REPLACE FUNCTION public.audit_anchor_holds()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if new.cutoff > now() - interval '720 hours' or new.base_ts >= new.cutoff
    or new.base_seq >= new.purge_seq
    or not exists (select from audit_entries
      where team_id = new.team_id and seq = new.base_seq and hash = new.base_hash and ts = new.base_ts)
    or not exists (select from audit_entries
      where team_id = new.team_id and seq = new.purge_seq and action = 'AUDIT_PURGED') then
    raise exception 'audit entries cannot be purged up to here' using errcode = 'insufficient_privilege';
  end if;
  return null;
end $function$;

CREATE CONSTRAINT TRIGGER audit_anchors_hold AFTER INSERT ON audit_anchors DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  EXECUTE FUNCTION audit_anchor_holds();

-- Removes up to `most` entries of a chain, the oldest first, and returns how many. There must be an anchor.
CREATE OR REPLACE FUNCTION public.purge_audit_entries(team uuid, up_to bigint, most integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  removed integer;
begin
  delete from audit_entries where id in (
    select id from audit_entries where team_id = team and seq <= up_to order by seq limit most for update skip locked);
  get diagnostics removed = row_count;
  return removed;
end $function$;

-- Each audit entry of which something was erased is named by an entry that its transaction has appended.
CREATE OR REPLACE FUNCTION public.audit_erasure_is_named()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  -- Whoever appends an entry holds the head until the commit, so that the newest one is of this transaction.
  if not exists (
    select from (
      select details from audit_entries where team_id = new.team_id and action = 'AUDIT_DETAILS_ERASED'
      order by seq desc limit 1) named, json_array_elements(named.details->'seqs') span
    where new.seq between (span->>0)::bigint and (span->>1)::bigint) then
    raise exception 'what is erased of audit entries must be named by an entry' using errcode = 'insufficient_privilege';
  end if;
  return null;
end $function$;

CREATE CONSTRAINT TRIGGER audit_entries_erased AFTER UPDATE ON audit_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  EXECUTE FUNCTION audit_erasure_is_named();

-- Erases what is personal about the first entries of a person behind an entry, and returns their numbers. An entry must
-- name them.
CREATE OR REPLACE FUNCTION public.erase_audit_details(team uuid, person uuid, behind bigint, most integer)
 RETURNS SETOF bigint
 LANGUAGE sql
AS $function$
  update audit_entries e
  set actor_name = null, src_ip = null, user_agent = null, details = null, details_salt = null
  from (
    select id from audit_entries
    where team_id = team and user_id = person and seq > behind and v = 2 and details is not null
      and action not in ('AUDIT_DETAILS_ERASED', 'AUDIT_PURGED', 'AUDIT_REOPENED')
    order by seq limit most for update) chosen
  where e.id = chosen.id
  returning e.seq;
$function$;
