-- How a team's executions ended in each hour (UTC): of the hours that are over and folded, all of them, with corrections
-- of what changes later; of others only what is deleted meanwhile. No references: a workflow's hours outlive it.
create table execution_hours (
  team_id uuid not null,
  -- All zeros: all workflows of the team together.
  workflow_id uuid not null,
  hour timestamptz(3) not null,
  ended integer not null,
  failed integer not null,
  cancelled integer not null,
  retries integer not null,
  -- How many took how long: those in each bucket of duration_bounds().
  durations integer[] not null,
  primary key (team_id, workflow_id, hour)
);
create index execution_hours_team on execution_hours (team_id, hour);

create table execution_hour_folds (
  team_id uuid primary key,
  -- All executions that ended before are in execution_hours.
  until timestamptz(3) not null
);

create function duration_bounds() returns bigint[] language sql immutable parallel safe as $$
  select array_agg(round(10 * 1.25::numeric ^ k)::bigint order by k) from generate_series(0, 86) k
$$;
comment on function duration_bounds is 'Milliseconds at which the buckets of durations begin, but for the first one; DURATION_BOUNDS in db/monitoring/executionhours.ts.';

create function duration_bucket(started timestamptz, completed timestamptz) returns integer
language sql immutable parallel safe as $$
  select case when started <= completed
    then width_bucket(round(extract(epoch from completed - started) * 1000)::bigint, duration_bounds())
    when started is not null then 0 end
$$;
comment on function duration_bucket is 'The bucket of an execution, from 0. Null if it has never begun.';

create function count_durations(buckets integer[]) returns integer[] language sql immutable parallel safe as $$
  select array_agg(coalesce(n, 0) order by bucket) from generate_series(0, array_length(duration_bounds(), 1)) bucket
  left join (select b as bucket, count(*)::integer as n from unnest(buckets) b group by b) found using (bucket)
$$;
comment on function count_durations is 'How many of a list are in each bucket.';

create function add_durations(a integer[], b integer[]) returns integer[] language sql immutable parallel safe as $$
  select array_agg(x + y order by n) from unnest(a, b) with ordinality as u(x, y, n)
$$;

create function is_counted(e executions) returns boolean language sql immutable as $$
  select e.completed_at is not null and e.status in ('SUCCESS', 'FAILED', 'CANCELLED')
    and e.trigger not in ('EVALUATION', 'PLAYBOOK')
$$;
comment on function is_counted is 'Whether an execution has ended, and is one of those that execution_hours tell of.';

create function add_execution_hour(e executions, sign integer) returns void language sql as $$
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
$$;
comment on function add_execution_hour is 'Adds an execution to its hour, or with -1 takes it away. Whoever calls it holds the lock of folding.';

create function execution_hour_changed() returns trigger language plpgsql as $$
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
end $$;
comment on function execution_hour_changed is 'An execution of an hour that may be folded has ended or changed. An hour is folded 15 minutes after its end at the earliest.';

create trigger executions_hours_inserted after insert on executions for each row
  when (new.completed_at < now() - interval '5 minutes') execute function execution_hour_changed();
create trigger executions_hours_changed after update of status, started_at, completed_at on executions for each row
  when (least(old.completed_at, new.completed_at) < now() - interval '5 minutes' and
    (old.status, old.started_at, old.completed_at) is distinct from (new.status, new.started_at, new.completed_at))
  execute function execution_hour_changed();

-- What is deleted before its hour is folded counts at once; later it is in the sums already, and stays there. Before the
-- deletion, because the records go along, which know of retries.
create function execution_hour_deleted() returns trigger language plpgsql as $$
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
end $$;
create trigger executions_hours_deleted before delete on executions for each row
  when (old.completed_at is not null) execute function execution_hour_deleted();

-- A deleted team takes its hours along. Whoever folds them meanwhile is waited for.
create function forget_execution_hours() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(7226077, hashtext(old.id::text));
  delete from execution_hours where team_id = old.id;
  delete from execution_hour_folds where team_id = old.id;
  return null;
end $$;
create trigger teams_hours_deleted after delete on teams for each row execute function forget_execution_hours();

-- What calls to models took, further: by the nodes that made them, and both by the days (UTC) whose hours are all folded.
-- Null: nothing is yet.
alter table model_call_folds add column nodes_until timestamptz(3), add column days_until timestamptz(3);

create table model_call_days (
  team_id uuid not null,
  day timestamptz(3) not null,
  workflow_id uuid not null,
  provider text not null,
  model text not null,
  calls integer not null,
  unpriced integer not null,
  priced integer not null,
  input bigint not null,
  output bigint not null,
  cached bigint not null,
  reasoning bigint not null,
  cost numeric not null,
  starts integer not null,
  firsts integer not null,
  primary key (team_id, day, workflow_id, provider, model)
);

create table model_call_node_hours (
  team_id uuid not null,
  hour timestamptz(3) not null,
  workflow_id uuid not null,
  node_id text not null,
  provider text not null,
  model text not null,
  calls integer not null,
  -- Without those that may still be under way: how many that may be is `open`.
  unpriced integer not null,
  priced integer not null,
  input bigint not null,
  output bigint not null,
  cached bigint not null,
  reasoning bigint not null,
  cost numeric not null,
  open integer not null,
  primary key (team_id, hour, workflow_id, node_id, provider, model)
);
create index model_call_node_hours_open on model_call_node_hours (team_id, hour) where open > 0;

create table model_call_node_days (
  team_id uuid not null,
  day timestamptz(3) not null,
  workflow_id uuid not null,
  node_id text not null,
  provider text not null,
  model text not null,
  calls integer not null,
  unpriced integer not null,
  priced integer not null,
  input bigint not null,
  output bigint not null,
  cached bigint not null,
  reasoning bigint not null,
  cost numeric not null,
  primary key (team_id, day, workflow_id, node_id, provider, model)
);

create or replace function unfold_model_calls(team uuid, at timestamptz) returns void language plpgsql as $$
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
end $$;
