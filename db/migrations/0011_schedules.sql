-- What Temporal may hold of a workflow's schedules, with a digest of what it was told. No foreign key: a row
-- outlives its workflow until the schedule is gone from Temporal.
create table schedules (
  workflow_id uuid not null,
  node_id text not null,
  digest text not null,
  primary key (workflow_id, node_id)
);

-- Whatever changes what is scheduled queues an errand: make Temporal's schedules of this workflow what the row says.
-- At the end of the transaction, so that the order in which a workflow and its version are written does not matter.
-- An errand that stands already gets a new id, so that whoever is carrying it out does not settle this one too.
create function queue_schedules() returns trigger language plpgsql as $$
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
end $$;
create constraint trigger workflow_schedules after insert or delete or update of active, version, settings
  on workflows deferrable initially deferred for each row execute function queue_schedules();
