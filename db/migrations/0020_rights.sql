-- A right is read again in the transaction that uses it, so that nobody acts who was removed while their request was on
-- its way.

create function hold_team(team uuid, alone boolean) returns boolean language plpgsql as $$
begin
  if not (case
      when alone then pg_try_advisory_xact_lock(hashtextextended(team::text, 2))
      else pg_try_advisory_xact_lock_shared(hashtextextended(team::text, 1)) end) then
    raise exception 'the rights in the team are changing' using errcode = '55P03';
  end if;
  if alone then
    perform pg_advisory_xact_lock(hashtextextended(team::text, 1));
  end if;
  perform from teams where id = team for key share;
  return found;
end $$;

create function hold_right(team uuid, person uuid, session uuid, token uuid, alone boolean) returns text
language plpgsql as $$
begin
  if not hold_team(team, alone) then
    return null;
  end if;
  if token is null then
    return (select m.role from members m join sessions s on s.user_id = m.user_id
      where m.team_id = team and m.user_id = person and s.id = session and s.expires_at > now());
  end if;
  return (select case when array_position(ranks, m.role) < array_position(ranks, t.role) then m.role else t.role end
    from members m join sdk_tokens t on t.team_id = m.team_id and t.user_id = m.user_id,
      (values (array['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN'])) as r (ranks)
    where m.team_id = team and m.user_id = person and t.id = token and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now()));
end $$;

-- A token that a token has made is revoked with it. The audit log knows of those of before.

alter table sdk_tokens add column made_by uuid references sdk_tokens on delete cascade;
create index sdk_tokens_maker on sdk_tokens (made_by) where made_by is not null;
update sdk_tokens t set made_by = e.actor_id from audit_entries e
  where e.team_id = t.team_id and e.action = 'SDK_TOKEN_CREATED' and e.actor_kind = 'SDK_TOKEN'
    and e.resource_id = t.id and exists (select from sdk_tokens m where m.id = e.actor_id);

-- Who has made a team, because nobody may make any number of them.

alter table teams add column created_by uuid references users on delete set null;
create index teams_creator on teams (created_by);
update teams t set created_by = e.actor_id from audit_entries e
  where e.team_id = t.id and e.action = 'TEAM_CREATED' and e.actor_kind = 'USER'
    and exists (select from users u where u.id = e.actor_id);

comment on function hold_team(uuid, boolean) is
  'Holds the team until the transaction ends, so that it is not deleted before; false if there is no such team. Acts hold
it together; one that changes who may do what holds it alone. It waits for the acts under way, and those that come later
fail (55P03) and are tried again, so that only one of them keeps a connection while it waits. An advisory lock, because
no other gets it once somebody waits for it: a stream of row locks could keep a removal waiting for ever.';
comment on function hold_right(uuid, uuid, uuid, uuid, boolean) is
  'The role in the team of a person who shows a session or an SDK token; null if they have none any more. Holds the team.
What it reads after the lock is what the last holder has left, because each statement of a volatile function has a
snapshot of its own.';
