-- The notes on the canvas belong to the version. The workflow's settings keep those of its newest version too, since
-- processes of the release before read and change them there.
alter table workflow_versions add column notes json not null default '[]';
alter table workflow_versions alter column notes drop default;

update workflow_versions v set notes = w.settings->'notes' from workflows w
  where w.id = v.workflow_id and json_typeof(w.settings->'notes') = 'array' and json_array_length(w.settings->'notes') > 0;

create function keep_notes() returns trigger language plpgsql as $$
begin
  new.notes := coalesce((select w.settings->'notes' from workflows w where w.id = new.workflow_id), '[]');
  return new;
end $$;

comment on function keep_notes is 'A version that a process of the release before saves has the notes of the workflow.';

create trigger workflow_versions_noted before insert on workflow_versions for each row
  when (new.notes is null) execute function keep_notes();
