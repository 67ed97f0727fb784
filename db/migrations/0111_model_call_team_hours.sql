-- What model_call_hours has of all workflows of a team together, so that the days of any time zone are read fast. Triggers
-- keep it, also for processes of the release before.
create table model_call_team_hours (
  team_id uuid not null,
  hour timestamptz(3) not null,
  provider text not null,
  model text not null,
  calls bigint not null,
  unpriced bigint not null,
  priced bigint not null,
  input bigint not null,
  output bigint not null,
  cached bigint not null,
  reasoning bigint not null,
  cost numeric not null,
  starts bigint not null,
  firsts bigint not null,
  primary key (team_id, hour, provider, model)
);

create function sum_model_call_hours() returns trigger language plpgsql as $$
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
end $$;
comment on function sum_model_call_hours is 'Keeps the sums of all workflows of a team in each hour. Those who write hours hold the lock of the team''s folds.';

-- The triggers keep other writers out until the end: what there is so far is complete.
create trigger model_call_hours_inserted after insert on model_call_hours referencing new table as added
  for each statement execute function sum_model_call_hours();
create trigger model_call_hours_updated after update on model_call_hours
  referencing old table as removed new table as added for each statement execute function sum_model_call_hours();
create trigger model_call_hours_deleted after delete on model_call_hours referencing old table as removed
  for each statement execute function sum_model_call_hours();

insert into model_call_team_hours
select team_id, hour, provider, model, sum(calls), sum(unpriced), sum(priced), sum(input), sum(output), sum(cached), sum(reasoning), sum(cost), sum(starts), sum(firsts)
from model_call_hours group by team_id, hour, provider, model;
