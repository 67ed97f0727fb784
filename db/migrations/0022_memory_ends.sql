-- Processes that ended because they were out of memory, so that the attempts they were at can count it. Processes of the
-- release before neither read nor write it.
create table memory_ends (
  process uuid primary key,
  at timestamptz not null default now()
);
