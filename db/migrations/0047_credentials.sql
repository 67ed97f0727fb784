-- What a team needs to sign in elsewhere. `sealed` holds its data under a key of its own; `wrapped` is that key,
-- sealed with the service's key `key_id`. Neither is ever read by a list.
create table credentials (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  type text not null,
  sealed bytea not null,
  wrapped bytea not null,
  key_id text not null,
  -- Counts the changes of the data, so that a process knows whether what it has read is still what holds.
  revision integer not null default 1,
  -- The names of the keys that are set, which are no secret.
  keys text[] not null,
  -- Where its requests may go; null: wherever the node says, if that is written in the node.
  allowed_hosts text[],
  -- OAUTH2: when the access token ends, and why it cannot be refreshed any more.
  expires_at timestamptz,
  broken text,
  test_status text check (test_status in ('SUCCESS', 'FAILED')),
  test_message text,
  last_tested_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (team_id, name)
);
create index credentials_by_key on credentials (key_id);

-- The credentials that a version of a workflow names. A credential that is deleted leaves its name behind in them.
create table version_credentials (
  workflow_id uuid not null,
  version integer not null,
  credential_id uuid not null,
  primary key (workflow_id, version, credential_id),
  foreign key (workflow_id, version) references workflow_versions (workflow_id, version) on delete cascade
);
create index version_credentials_by_credential on version_credentials (credential_id);
