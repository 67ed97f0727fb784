-- Reports that are mailed at the slots of a cron expression.
create table scheduled_reports (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  schedule text not null,
  timezone text not null,
  recipients text[] not null,
  metrics text[] not null,
  enabled boolean not null,
  -- Null: it is not enabled, or its schedule has no slot any more.
  next_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create index scheduled_reports_team on scheduled_reports (team_id, created_at, id);
create index scheduled_reports_due on scheduled_reports (next_at) where next_at is not null;

-- The mails of a report: one for each slot, and those that somebody has asked for.
create table scheduled_report_runs (
  id uuid primary key,
  report_id uuid not null references scheduled_reports on delete cascade,
  team_id uuid not null,
  -- The time of the schedule, or of the request.
  slot timestamptz(3) not null,
  manual boolean not null default false,
  -- What the report was at the slot.
  name text not null,
  timezone text not null,
  recipients text[] not null,
  metrics text[] not null,
  period_from timestamptz(3) not null check (period_from < slot),
  -- SENDING: the server has had all of the mail but its last bytes. What follows is not known until it answers.
  status text not null check (status in ('PENDING', 'SENDING', 'SENT', 'FAILED', 'SKIPPED')),
  tries integer not null default 0,
  error text,
  -- Recipients that the server has refused, while it took the mail for others.
  refused text[] not null default '{}',
  sent_at timestamptz(3),
  due_at timestamptz(3) not null default now(),
  claim uuid,
  claimed_until timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create unique index scheduled_report_runs_slot on scheduled_report_runs (report_id, slot) where not manual;
-- Somebody who asks again while one is not sent gets that one.
create unique index scheduled_report_runs_asked on scheduled_report_runs (report_id)
  where manual and status in ('PENDING', 'SENDING');
create index scheduled_report_runs_report on scheduled_report_runs (report_id, slot desc, id desc);
create index scheduled_report_runs_due on scheduled_report_runs (due_at) where status in ('PENDING', 'SENDING');
create index scheduled_report_runs_age on scheduled_report_runs (created_at);
create index scheduled_report_runs_counted on scheduled_report_runs (team_id, created_at) where manual;
