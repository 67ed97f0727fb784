-- The processes that carry out nodes. Each renews its row every second, by this server's clock; one that was seen
-- expired for a while, by a process that could renew its own, is lost, and its attempts are made again. `place` is the data
-- folder that only one process at a time runs on: the next one there knows that those before it are gone. Processes of
-- the release before have no row.
create table worker_leases (
  process uuid primary key,
  place text,
  renewed_at timestamptz not null default now(),
  -- Since when a process fails the attempts of this one; null while nobody does.
  claimed_at timestamptz
) with (fillfactor = 50);
