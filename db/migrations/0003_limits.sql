-- Requests per minute and caller. Unlogged: an upsert waits for no disk, and a crash of PostgreSQL only lets a
-- minute begin anew.
create unlogged table request_counts (
  key text not null,
  minute timestamptz(0) not null,
  used integer not null,
  primary key (key, minute)
) with (fillfactor = 50);
create index request_counts_minute on request_counts (minute);
