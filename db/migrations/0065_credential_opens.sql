-- How often attempts of nodes have opened credentials, until the hour is over and there is an audit entry of it. Each
-- process has rows of its own, so that processes do not wait for each other.
create table credential_opens (
  team_id uuid not null references teams on delete cascade,
  hour timestamptz not null,
  credential_id uuid not null,
  workflow_id uuid not null,
  process uuid not null,
  opened bigint not null,
  primary key (team_id, hour, credential_id, workflow_id, process)
) with (fillfactor = 50);
create index credential_opens_hour on credential_opens (hour);
