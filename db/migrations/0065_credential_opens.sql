-- How often attempts of nodes and audit forwarders have opened credentials, until the hour is over and there is an audit
-- entry of it. Each process has rows of its own, so that processes do not wait for each other.
create table credential_opens (
  team_id uuid not null references teams on delete cascade,
  hour timestamptz not null,
  credential_id uuid not null,
  -- A workflow, or an audit forwarder.
  opener_kind text not null check (opener_kind in ('WORKFLOW', 'FORWARDER')),
  opener_id uuid not null,
  process uuid not null,
  opened bigint not null,
  primary key (team_id, hour, credential_id, opener_kind, opener_id, process)
) with (fillfactor = 50);
create index credential_opens_hour on credential_opens (hour);
