-- What proves an audit chain to others, and what keeps it within its period.

-- Entries of version 2 say who was behind a token, and with what a request was made. Processes of the release before
-- append entries of version 1.
alter table audit_entries
  add column v smallint not null default 1,
  add column user_id uuid,
  add column user_agent text,
  add column access_id uuid;

-- The keys with which checkpoints and anchors are verified, so that they can be when the master key is gone. The
-- signature vouches for a row with a master key of the installation, and moves on to the current one.
create table audit_public_keys (
  key_id text primary key,
  public_key bytea not null,
  created_at timestamptz(3) not null default now(),
  mac bytea not null,
  mac_key_id text not null
);

-- What a chain was at some time, signed so that anybody can verify it.
create table audit_checkpoints (
  team_id uuid not null,
  seq bigint not null,
  hash bytea not null,
  at timestamptz(3) not null,
  key_id text not null,
  signature bytea not null,
  primary key (team_id, seq, at)
);

-- How many checkpoints of a chain were signed, signed itself: one that is gone would not be missed without it.
create table audit_checkpoint_counts (
  team_id uuid primary key,
  count bigint not null,
  key_id text not null,
  signature bytea not null
);

-- Where a chain begins after a purge: its entries up to base_seq are gone, as its entry purge_seq says.
create table audit_anchors (
  team_id uuid not null,
  base_seq bigint not null,
  base_hash bytea not null,
  base_ts timestamptz(3) not null,
  purge_seq bigint not null,
  cutoff timestamptz(3) not null,
  -- The entries up to base_seq with which the chain was reopened, as JSON: [{seq, at}].
  breaks text not null,
  created_at timestamptz(3) not null,
  key_id text not null,
  signature bytea not null,
  primary key (team_id, base_seq)
);

create table audit_retention (
  team_id uuid primary key references teams on delete cascade,
  retention_days integer not null default 365 check (retention_days between 30 and 36500),
  auto_delete_enabled boolean not null default false,
  last_purged_at timestamptz(3),
  -- When the schedule has looked at the team, whether or not there was anything to remove.
  looked_at timestamptz(3)
);
create index audit_retention_due on audit_retention (looked_at nulls first) where auto_delete_enabled;

create function audit_keeps_entries() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.ts < now() - interval '720 hours' and exists (
    select from audit_anchors where team_id = old.team_id and base_seq >= old.seq) then
    return old;
  end if;
  raise exception 'audit entries cannot be altered or removed' using errcode = 'insufficient_privilege';
end $$;
comment on function audit_keeps_entries is
  'Audit entries are added, and not changed; those up to an anchor of their chain can be removed once they are 30 days old.';
drop trigger audit_entries_append_only on audit_entries;
create trigger audit_entries_append_only before update or delete on audit_entries
  for each row execute function audit_keeps_entries();

create function audit_anchor_holds() returns trigger language plpgsql as $$
begin
  if new.cutoff > now() - interval '720 hours' or new.base_ts >= new.cutoff
    or new.base_seq >= new.purge_seq
    or not exists (select from audit_entries
      where team_id = new.team_id and seq = new.base_seq and hash = new.base_hash and ts = new.base_ts)
    or not exists (select from audit_entries
      where team_id = new.team_id and seq = new.purge_seq and action = 'AUDIT_PURGED') then
    raise exception 'audit entries cannot be purged up to here' using errcode = 'insufficient_privilege';
  end if;
  return null;
end $$;
comment on function audit_anchor_holds is
  'An anchor is for entries that are older than 30 days, by the clock of the database, and for a purge that is an entry.';
create constraint trigger audit_anchors_hold after insert on audit_anchors deferrable initially deferred
  for each row execute function audit_anchor_holds();

create function purge_audit_entries(team uuid, up_to bigint, most integer) returns integer language plpgsql as $$
declare
  removed integer;
begin
  delete from audit_entries where id in (
    select id from audit_entries where team_id = team and seq <= up_to order by seq limit most for update skip locked);
  get diagnostics removed = row_count;
  return removed;
end $$;
comment on function purge_audit_entries is
  'Removes at most so many entries of a chain, the oldest first, and returns how many. There must be an anchor.';

create trigger audit_checkpoints_append_only before update or delete on audit_checkpoints
  for each row execute function audit_is_append_only();
create trigger audit_checkpoints_no_truncate before truncate on audit_checkpoints
  for each statement execute function audit_is_append_only();
create trigger audit_checkpoint_counts_stay before delete on audit_checkpoint_counts
  for each row execute function audit_is_append_only();
create trigger audit_checkpoint_counts_no_truncate before truncate on audit_checkpoint_counts
  for each statement execute function audit_is_append_only();
create trigger audit_anchors_append_only before update or delete on audit_anchors
  for each row execute function audit_is_append_only();
create trigger audit_anchors_no_truncate before truncate on audit_anchors
  for each statement execute function audit_is_append_only();
create trigger audit_public_keys_append_only before update of key_id, public_key, created_at or delete
  on audit_public_keys for each row execute function audit_is_append_only();
create trigger audit_public_keys_no_truncate before truncate on audit_public_keys
  for each statement execute function audit_is_append_only();
