-- What is read on each request and seldom changes is kept in the memory of processes, so each change of it is told: to all
-- processes by the channel of their bus, and, where a connection asks for it with `perdure.hears`, to the one that makes
-- the change. The texts are those of migration 0093, and new ones of the same kind.
create function tell_change(what text) returns void language plpgsql as $$
declare
  told integer := coalesce(nullif(current_setting('perdure.told', true), '')::integer, 0);
begin
  -- After many changes in one transaction, a single text says that anything may have changed.
  if told > 100 then
    return;
  end if;
  if told = 100 then
    what := 'everything';
  end if;
  perform set_config('perdure.told', (told + 1)::text, true);
  perform pg_notify('processes', what);
  -- Unlike a notice, an info reaches the client whatever it has set.
  if current_setting('perdure.hears', true) = 'on' then
    raise info 'perdure changed' using detail = what;
  end if;
end $$;

comment on function tell_change is 'Tells all processes, at the commit, what of theirs in memory is no longer true.';

create or replace function tell_rights() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform tell_change('rights:' || old.user_id);
  end if;
  if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.user_id <> old.user_id then
    perform tell_change('rights:' || new.user_id);
  end if;
  return null;
end $$;

create or replace function tell_instance_rights() returns trigger language plpgsql as $$
begin
  perform tell_change('rights:' || old.id);
  return null;
end $$;

comment on function tell_rights is 'Tells all processes that the rights of a person, with their sessions and tokens, may have changed.';
comment on function tell_instance_rights is 'Tells all processes that the name of a person has changed, or whether they are the administrator.';

create function tell_plan() returns trigger language plpgsql as $$
begin
  perform tell_change('plan:' || old.id);
  return null;
end $$;

create function tell_workflow() returns trigger language plpgsql as $$
begin
  perform tell_change('workflow:' || old.id);
  return null;
end $$;

comment on function tell_plan is 'Tells all processes that a team has another plan, or is gone.';
comment on function tell_workflow is 'Tells all processes that a workflow has changed, or is gone.';

create trigger members_joined after insert on members for each row execute function tell_rights();
create trigger sessions_changed after update on sessions for each row execute function tell_rights();
-- Not of last_used_at, which is written often.
create trigger sdk_tokens_changed after update of name, token_hash, user_id, team_id on sdk_tokens for each row
  execute function tell_rights();
create trigger users_told after update of email, first_name, last_name, instance_admin on users for each row
  when ((old.email, old.first_name, old.last_name, old.instance_admin)
    is distinct from (new.email, new.first_name, new.last_name, new.instance_admin))
  execute function tell_instance_rights();
create trigger teams_plan_changed after update of plan on teams for each row
  when (old.plan is distinct from new.plan) execute function tell_plan();
create trigger teams_gone after delete on teams for each row execute function tell_plan();
create trigger workflows_changed after update on workflows for each row execute function tell_workflow();
create trigger workflows_gone after delete on workflows for each row execute function tell_workflow();
