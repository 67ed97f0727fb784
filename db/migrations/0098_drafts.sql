-- A workflow may have a draft beside its published version. `version` of a workflow stays the published one: that is what
-- processes of the release before start. They save it as `version` + 1, which is refused while that number is a draft's.
alter table workflows add column draft_version integer, add column last_draft integer;
comment on column workflows.last_draft is
'The highest number that a draft has had. Numbers are not used again: every process keeps the graphs of versions by number.';

-- No process, whatever its release, deletes the version that is the draft.
alter table workflows add constraint workflows_draft_fkey
  foreign key (id, draft_version) references workflow_versions (workflow_id, version);

-- `draft`: it was saved as a draft and has never been published. `published_at` is null if it was published when it was
-- saved.
alter table workflow_versions
  add column draft boolean not null default false,
  add column published_at timestamptz(3),
  add column published_by uuid,
  add column note text;

-- Those of a draft, or of another version than the published one, and what they start: nothing is judged by them.
alter table executions add column draft boolean not null default false;

create function keep_drafts() returns trigger language plpgsql as $$
begin
  if new.version <= (select last_draft from workflows where id = new.workflow_id) then
    raise unique_violation using constraint = 'workflow_versions_pkey',
      message = format('Version %s is or was a draft of the workflow', new.version);
  end if;
  return new;
end $$;
comment on function keep_drafts is
'Refuses a version with the number of a draft, with which a process of the release before would publish beside it.';
create trigger workflow_versions_drafted before insert on workflow_versions for each row execute function keep_drafts();

create or replace function is_counted(e executions) returns boolean language sql immutable as $$
  select e.completed_at is not null and e.status in ('SUCCESS', 'FAILED', 'CANCELLED')
    and e.trigger not in ('EVALUATION', 'PLAYBOOK') and not e.draft
$$;

create or replace function execution_ended() returns trigger language plpgsql as $$
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
end $$;
