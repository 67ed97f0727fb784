-- Takes a run for judging when it ends SUCCESS, as its workflow's config says then: a rate that is raised later counts for
-- later runs only. The same runs are taken for the same rate, and all of them also for a higher one.
create function sample_run() returns trigger language plpgsql as $$
declare
  rate integer;
begin
  -- A rebuilt row ends again; what ended long ago is not judged.
  if new.completed_at < now() - interval '1 day' then
    return null;
  end if;
  select case when coalesce(w.enabled, t.enabled, false) then coalesce(w.sampling_rate, t.sampling_rate, 10) end into rate
  from (select) as one
    left join eval_configs w on w.workflow_id = new.workflow_id
    left join eval_configs t on t.team_id = new.team_id and t.workflow_id is null;
  if rate is null or sample_of(new.id) >= rate then
    return null;
  end if;
  insert into evaluations (id, team_id, workflow_id, execution_id, status, reason, judged_at)
    values (gen_random_uuid(), new.team_id, new.workflow_id, new.id,
      case when new.keep_inputs and new.keep_outputs then 'PENDING' else 'SKIPPED' end,
      case when not (new.keep_inputs and new.keep_outputs) then 'NOT_KEPT' end,
      case when not (new.keep_inputs and new.keep_outputs) then now() end)
    on conflict (execution_id) do nothing;
  return null;
end $$;

create function sample_of(run uuid) returns integer language sql immutable as $$
  select (('x' || substr(md5(run::text), 1, 8))::bit(32)::bigint % 100)::integer
$$;

create trigger executions_sampled after update of status on executions for each row
  when (new.status = 'SUCCESS' and old.status <> 'SUCCESS' and new.only_node is null
    and new.trigger not in ('EVALUATION', 'PLAYBOOK'))
  execute function sample_run();

comment on function sample_run is 'Takes runs that have ended SUCCESS for judging, by the config of their workflow or team.';
comment on function sample_of is 'The place of a run among 100, the same for ever: it is judged at rates above it.';
