-- Services that a team's nodes call by what a document says of them. A version never changes: what was said when a
-- workflow was saved holds for its executions.
create table connectors (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  title text not null,
  summary text not null,
  kind text not null check (kind in ('OPENAPI')),
  -- The newest version.
  version integer not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint connectors_name unique (team_id, name)
);

create table connector_versions (
  connector_id uuid not null references connectors on delete cascade,
  version integer not null,
  -- {server, signIn, setup, source, repeatable, paging, problems}
  head json not null,
  created_at timestamptz(3) not null default now(),
  primary key (connector_id, version)
);

-- One row for each, since a call needs one of perhaps a thousand.
create table connector_actions (
  connector_id uuid not null,
  version integer not null,
  id text not null,
  place integer not null,
  -- As in the action, for lists: its JSON is large, and may have what a text cannot.
  name text not null,
  summary text not null,
  action json not null,
  primary key (connector_id, version, id),
  foreign key (connector_id, version) references connector_versions (connector_id, version) on delete cascade
);

-- Which connectors the nodes of a workflow's version name, and which version of each held when it was saved.
create table version_connectors (
  workflow_id uuid not null,
  version integer not null,
  named text not null,
  connector_id uuid not null references connectors on delete cascade,
  connector_version integer not null,
  primary key (workflow_id, version, named),
  foreign key (workflow_id, version) references workflow_versions (workflow_id, version) on delete cascade
);
create index version_connectors_connector on version_connectors (connector_id);
