-- What is personal about an entry of version 2 can be erased: its chain covers only a salted hash of that.
alter table audit_entries
  alter column details drop not null,
  alter column details_salt drop not null;

create or replace function audit_keeps_entries() returns trigger language plpgsql as $$
declare
  kept audit_entries;
begin
  if tg_op = 'DELETE' and old.ts < now() - interval '720 hours' and exists (
    select from audit_anchors where team_id = old.team_id and base_seq >= old.seq) then
    return old;
  end if;
  if tg_op = 'UPDATE' and old.v = 2 and old.details is not null
    and old.action not in ('AUDIT_DETAILS_ERASED', 'AUDIT_PURGED', 'AUDIT_REOPENED') then
    kept := old;
    kept.actor_name := null;
    kept.src_ip := null;
    kept.user_agent := null;
    kept.details := null;
    kept.details_salt := null;
    if new::text = kept::text then
      return new;
    end if;
  end if;
  raise exception 'audit entries cannot be altered or removed' using errcode = 'insufficient_privilege';
end $$;
comment on function audit_keeps_entries is
  'Audit entries are added, and not changed; those up to an anchor of their chain can be removed once they are 30 days old, and what is personal about one can be erased.';

create function audit_erasure_is_named() returns trigger language plpgsql as $$
begin
  -- Whoever appends an entry holds the head until the commit, so that the newest one is of this transaction.
  if not exists (
    select from (
      select details from audit_entries where team_id = new.team_id and action = 'AUDIT_DETAILS_ERASED'
      order by seq desc limit 1) named, json_array_elements(named.details->'seqs') span
    where new.seq between (span->>0)::bigint and (span->>1)::bigint) then
    raise exception 'what is erased of audit entries must be named by an entry' using errcode = 'insufficient_privilege';
  end if;
  return null;
end $$;
comment on function audit_erasure_is_named is
  'Each audit entry of which something was erased is named by an entry that its transaction has appended.';
create constraint trigger audit_entries_erased after update on audit_entries deferrable initially deferred
  for each row execute function audit_erasure_is_named();

create function erase_audit_details(team uuid, person uuid, behind bigint, most integer) returns setof bigint
language sql as $$
  update audit_entries e
  set actor_name = null, src_ip = null, user_agent = null, details = null, details_salt = null
  from (
    select id from audit_entries
    where team_id = team and user_id = person and seq > behind and v = 2 and details is not null
      and action not in ('AUDIT_DETAILS_ERASED', 'AUDIT_PURGED', 'AUDIT_REOPENED')
    order by seq limit most for update) chosen
  where e.id = chosen.id
  returning e.seq;
$$;
comment on function erase_audit_details is
  'Erases what is personal about the first entries of a person behind an entry, and returns their numbers. An entry must name them.';
