-- How many refused requests of a caller have got audit entries of their own in a minute (the rows with the act ''), and
-- how many have not: those of a minute that is over become one entry. The caller '*' are all callers of a chain.
create table audit_refusals (
  chain_id uuid not null,
  minute timestamptz not null,
  caller text not null,
  act text not null,
  entered integer not null default 0,
  more bigint not null default 0,
  first_at timestamptz(3),
  last_at timestamptz(3),
  -- Who it was, for the entry of those that have none of their own.
  actor json,
  primary key (chain_id, minute, caller, act)
) with (fillfactor = 50);
create index audit_refusals_minute on audit_refusals (minute);
