-- The version that was published when the draft began: another one by now means that production has moved on. Null
-- without a draft, and of a draft that began before this column.
alter table workflows add column draft_base integer;

create function note_draft_base() returns trigger language plpgsql as $$
begin
  if new.draft_version is null then
    new.draft_base := null;
  elsif old.draft_version is null then
    new.draft_base := old.version;
  end if;
  return new;
end $$;
comment on function note_draft_base is
'Notes the version that is published when a draft begins; further saves of the draft keep it.';
create trigger workflows_draft_begun before update of draft_version on workflows for each row execute function note_draft_base();
