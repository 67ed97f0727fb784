-- What a team's calls to models took in each hour that is over, so that totals need not read every call. Only hours
-- before `until` are folded, all of them; a call of theirs that still changes takes back its hour and those after it.
create table model_call_folds (
  team_id uuid primary key,
  until timestamptz(3) not null
);

create table model_call_hours (
  team_id uuid not null,
  hour timestamptz(3) not null,
  workflow_id uuid not null,
  provider text not null,
  model text not null,
  calls integer not null,
  -- Without those that may still be under way: see `open` below.
  unpriced integer not null,
  priced integer not null,
  input bigint not null,
  output bigint not null,
  cached bigint not null,
  reasoning bigint not null,
  cost numeric not null,
  -- The executions whose first call of all is in this hour, each at one of its models; and those that have not called
  -- this model before.
  starts integer not null,
  firsts integer not null,
  primary key (team_id, hour, workflow_id, provider, model)
);

-- The executions of an hour that had called models before it, or have a call that may still be under way: whether they
-- count depends on where a span begins, and on how they are now.
create table model_call_hour_runs (
  team_id uuid not null,
  hour timestamptz(3) not null,
  execution_id uuid not null,
  workflow_id uuid not null,
  provider text not null,
  model text not null,
  -- When the last call before the hour began: of any model, at one of the execution's models only; and of this model.
  before timestamptz(3),
  before_of_model timestamptz(3),
  -- How many calls may still be under way.
  open integer not null,
  primary key (team_id, hour, execution_id, workflow_id, provider, model)
);

create function unfold_model_calls(team uuid, at timestamptz) returns void language plpgsql as $$
declare
  begun constant timestamptz := date_trunc('hour', at, 'UTC');
begin
  -- Whoever folds holds it too: what is folded meanwhile is seen by the statements below.
  perform pg_advisory_xact_lock(7226061, hashtext(team::text));
  update model_call_folds set until = begun where team_id = team and until > begun;
  if found then
    delete from model_call_hours where team_id = team and hour >= begun;
    delete from model_call_hour_runs where team_id = team and hour >= begun;
  end if;
end $$;

create function model_call_changed() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then perform unfold_model_calls(old.team_id, old.created_at); end if;
  if tg_op <> 'DELETE' then perform unfold_model_calls(new.team_id, new.created_at); end if;
  return null;
end $$;

comment on function model_call_changed is 'A call of an hour that may be folded has changed. An hour is folded 15 minutes after its end at the earliest.';

create trigger model_calls_inserted after insert on model_calls for each row
  when (new.created_at < now() - interval '5 minutes') execute function model_call_changed();
create trigger model_calls_updated after update on model_calls for each row
  when (least(old.created_at, new.created_at) < now() - interval '5 minutes') execute function model_call_changed();
create trigger model_calls_deleted after delete on model_calls for each row
  when (old.created_at < now() - interval '5 minutes') execute function model_call_changed();
