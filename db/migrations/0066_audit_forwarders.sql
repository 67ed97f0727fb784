-- Where a team's audit entries are sent by the service itself, and up to which entry they were.
create table audit_forwarders (
  id uuid primary key,
  -- No reference: the receivers of a deleted team are told of its end.
  team_id uuid not null,
  name text not null,
  type text not null check (type in ('SYSLOG', 'HTTPS')),
  enabled boolean not null default true,
  host text,
  port integer check (port between 1 and 65535),
  ca_certificate text,
  url text,
  -- No reference: a forwarder whose credential was deleted must fail, not send without it.
  credential_id uuid,
  -- The last entry that the receiver has taken.
  sent_seq bigint not null check (sent_seq >= 0),
  -- How many entries were purged before they were sent.
  missed bigint not null default 0,
  last_sent_at timestamptz(3),
  last_error text,
  last_error_at timestamptz(3),
  failures integer not null default 0,
  due_at timestamptz(3) not null default now(),
  -- Only the process that holds this number may send, and move sent_seq.
  lease uuid,
  lease_until timestamptz(3),
  -- Of a copy, which nobody sees: until when it is tried, up to which entry it sends (null: to the end of the chain), and
  -- the credential as it was.
  ends_at timestamptz(3),
  last_seq bigint,
  kept_credential json,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  check (case type when 'SYSLOG' then host is not null and port is not null else url is not null end)
);
create index audit_forwarders_team on audit_forwarders (team_id, created_at, id);
create index audit_forwarders_due on audit_forwarders (due_at) where enabled;
create index audit_forwarders_credential on audit_forwarders (credential_id) where credential_id is not null;
