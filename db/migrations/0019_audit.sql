-- Each audit entry is signed by itself, and a chain that was tampered with is not extended any more.

-- Processes of the release before append entries without a signature; these stay null.
alter table audit_entries add column mac bytea, add column key_id text;

-- Which entries have no signature of their own because an older process appended them. Written by the process that
-- extends the chain behind them, once it has checked the head that the older one has signed.
create table audit_unsigned (
  team_id uuid not null,
  from_seq bigint not null,
  to_seq bigint not null,
  hash bytea not null,
  mac bytea not null,
  key_id text not null,
  noted_at timestamptz(3) not null default now(),
  primary key (team_id, to_seq)
);
create trigger audit_unsigned_append_only before update or delete on audit_unsigned
  for each row execute function audit_is_append_only();
create trigger audit_unsigned_no_truncate before truncate on audit_unsigned
  for each statement execute function audit_is_append_only();

-- Every chain has a head from its beginning, so that one without a head has been tampered with. The instance's chain
-- begins here: SQL does not have the key, so the first process signs this head before it appends anything anywhere.
insert into audit_heads (team_id, seq, hash, ts, mac, key_id)
  values ('00000000-0000-0000-0000-000000000000', 0,
    sha256('audit-v1-genesis|00000000-0000-0000-0000-000000000000'), '-infinity', '', '')
  on conflict do nothing;
