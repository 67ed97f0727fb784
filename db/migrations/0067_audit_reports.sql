-- Reports of a team's audit: what was asked for, and the files that were made of it.
create table audit_reports (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  type text not null check (type in ('COMPLIANCE', 'ACTIVITY', 'SECURITY')),
  from_at timestamptz(3) not null,
  to_at timestamptz(3) not null check (to_at > from_at),
  status text not null default 'PENDING' check (status in ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED')),
  created_at timestamptz(3) not null default now(),
  created_by uuid,
  created_by_name text not null,
  started_at timestamptz(3),
  finished_at timestamptz(3),
  expires_at timestamptz(3) not null,
  error text,
  -- Who makes it, and how often somebody has begun to.
  claim uuid,
  attempts integer not null default 0,
  -- PENDING: when somebody may begin. RUNNING: when the claim ends.
  due_at timestamptz(3) not null default now(),
  -- Of each format the number of bytes and their SHA-256.
  files json
);
create index audit_reports_team on audit_reports (team_id, created_at desc, id desc);
create index audit_reports_due on audit_reports (due_at) where status in ('PENDING', 'RUNNING');
create index audit_reports_expired on audit_reports (expires_at);

-- The files, in pieces, so that neither writing nor reading one needs all of it at once.
create table audit_report_parts (
  report_id uuid not null references audit_reports on delete cascade,
  format text not null check (format in ('html', 'json')),
  part integer not null,
  bytes bytea not null,
  primary key (report_id, format, part)
);

alter table audit_retention
  add column report_retention_days integer not null default 365 check (report_retention_days between 1 and 36500);
