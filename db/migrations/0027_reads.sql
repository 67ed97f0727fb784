-- The sweeper asks Temporal less and less often about a run that only waits, and ends an execution as lost only when
-- several looks over minutes have missed its run: the row keeps what the looks of all processes found.
alter table executions
  add column quiet_checks smallint not null default 0,
  add column missing_since timestamptz(3),
  add column missing_checks smallint not null default 0,
  -- How many node records the projection has written; null if an older release did.
  add column if not exists record_count integer;

-- Deletions of runs have a lane, and an index, of their own: thousands of them must not stand before starts and signals.
-- The two indexes together hold each errand once, as outbox_team did.
create index outbox_urgent on outbox (team_id, due_at, id) where kind <> 'DELETE';
create index outbox_deletes on outbox (team_id, due_at, id) where kind = 'DELETE';
drop index outbox_team;

-- Totals of spans of time: executions by the day (UTC) on which they were created, for each team and each workflow. A day
-- is counted once, when it is over (slot -1). What changes afterwards is added by the trigger, in 32 slots so that writers
-- do not wait for each other, and folded by the housekeeping.
create table execution_days (
  owner_id uuid not null,
  day date not null,
  status text not null,
  slot smallint not null,
  n bigint not null,
  primary key (owner_id, day, status, slot)
);
create index execution_days_changes on execution_days (day) where slot >= 0;

-- How far that has come. `noted_until`: changes of executions created before it are noted. `noted_since`: all
-- transactions from this one on know that. `counted_until`: the days before it are counted.
create table execution_days_kept (
  one boolean primary key default true check (one),
  noted_until timestamptz not null default '-infinity',
  noted_since xid8,
  counted_until timestamptz not null default '-infinity'
);
insert into execution_days_kept default values;

create or replace function count_executions() returns trigger language plpgsql as $$
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
end $$;
comment on function count_executions() is
  'Counts executions by team, workflow and status, in 32 slots so that writers do not wait for each other; those that were
created on a day that is over also by that day.';

create or replace function forget_execution_counts() returns trigger language plpgsql as $$
begin
  delete from execution_counts where workflow_id = old.id;
  delete from execution_days where owner_id = old.id;
  return null;
end $$;
-- Also for a team, which is no workflow, but an owner of days.
create trigger teams_forget_counts after delete on teams for each row execute function forget_execution_counts();
