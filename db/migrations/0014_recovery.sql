-- How a run came from the one it names in `retried_from`: RETRY from its failed nodes on, RERUN from the start. And the
-- one node that it runs, where it runs no more than that.
alter table executions add column recovery text check (recovery in ('RETRY', 'RERUN')), add column only_node text;

-- A retry's copies of big outputs are written before its own row: nobody waits at a workflow's limit meanwhile.
alter table blobs alter constraint blobs_execution_id_fkey deferrable initially immediate;

-- Errands are taken from one team after the other, so that thousands of one do not hold up another's single one. A
-- subject that is gone already belongs to nobody.
alter table outbox add column team_id uuid not null default '00000000-0000-0000-0000-000000000000';
update outbox o set team_id = e.team_id from executions e where e.id = o.subject_id;
update outbox o set team_id = w.team_id from workflows w where w.id = o.subject_id;
create index outbox_team on outbox (team_id, due_at, id);
drop index outbox_due;

create function own_errand() returns trigger language plpgsql as $$
begin
  new.team_id := coalesce((select team_id from executions where id = new.subject_id),
    (select team_id from workflows where id = new.subject_id), new.team_id);
  return new;
end $$;
create trigger outbox_owned before insert on outbox for each row
  when (new.team_id = '00000000-0000-0000-0000-000000000000') execute function own_errand();

-- Outputs that a run was given go with all others where they are not kept.
create function forget_given() returns trigger language plpgsql as $$
begin
  new.given := null;
  return new;
end $$;
create trigger executions_ending_given before update of status on executions for each row
  when (not old.keep_outputs and old.given is not null
    and old.status in ('PENDING', 'RUNNING') and new.status not in ('PENDING', 'RUNNING'))
  execute function forget_given();
