-- What is known of the seals of Temporal's payloads (activities/temporal/codec.ts).

-- The versions that bind a payload to its run. From `since` on, runs begin with payloads of that version only.
create table seal_versions (
  version smallint primary key,
  since timestamptz(3) not null
);

-- Nothing was ever sealed otherwise in a database that is new.
insert into seal_versions (version, since)
select 2, now() where not exists (select from users) and not exists (select from executions);

-- The id of every key that a process of this installation has had.
create table seal_keys (
  id text primary key,
  noted_at timestamptz(3) not null default now()
);
