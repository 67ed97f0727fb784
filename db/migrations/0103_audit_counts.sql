-- How many entries of a chain there are of each kind, in blocks of 4,096 numbers (AUDIT_BLOCK in db/audit/counts.ts). Entries
-- do not change, so a block that is complete is counted once. No references: a chain outlives its team.
create table audit_counts (
  team_id uuid not null,
  -- From 0: the block of an entry is (seq - 1) / 4096.
  block bigint not null,
  action text not null,
  resource_type text not null,
  outcome text not null,
  -- The person behind the act, as lists filter by it. Null if there was none.
  person uuid,
  n integer not null
);
create index audit_counts_block on audit_counts (team_id, block);

create table audit_count_folds (
  team_id uuid primary key,
  -- All entries up to this number are in audit_counts.
  until bigint not null
);
