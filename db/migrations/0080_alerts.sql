-- How far the hours of a team that wants alerts are evaluated. Each hour is evaluated once: the row moves on in the
-- transaction that writes what was found.
create table alert_watches (
  team_id uuid primary key references teams on delete cascade,
  -- The begin of the hour (UTC) that is evaluated next.
  next_from timestamptz(3) not null,
  -- Who evaluates it, and until when others leave it to them.
  claim uuid,
  claimed_until timestamptz(3),
  -- How often it was begun.
  attempts integer not null default 0,
  -- Before then it is not tried again.
  due_at timestamptz(3) not null default now(),
  -- The hours that were left out last, because nobody evaluated them for too long.
  skipped_from timestamptz(3),
  skipped_to timestamptz(3)
);
create index alert_watches_due on alert_watches (due_at);

-- What was last said of a metric of a workflow, or of the team: then the workflow is all zeros.
create table alert_states (
  team_id uuid not null references teams on delete cascade,
  metric text not null,
  -- No reference: what was said of a deleted workflow goes a week later.
  workflow_id uuid not null,
  type text not null check (type in ('ANOMALY', 'DRIFT', 'SENTIMENT')),
  state text not null check (state in ('FIRING', 'QUIET', 'INSUFFICIENT_DATA', 'FAILED')),
  reason text,
  -- The end of the hour since which it is so, and of the hour that it was last said of.
  since timestamptz(3) not null,
  window_to timestamptz(3) not null,
  -- How many hours it is quiet, without those that had too little to say so.
  quiet_windows integer not null default 0,
  primary key (team_id, metric, workflow_id)
);

-- What a team's calls to models were in the hours that have been evaluated, which later hours are held against: by
-- workflow, and with all zeros all of them together. Written once, a minute after the hour.
create table alert_call_hours (
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid not null,
  hour timestamptz(3) not null,
  -- Those that had ended, and those of them that failed.
  calls integer not null,
  failed integer not null,
  tokens bigint not null,
  -- How many of those that succeeded took how long: those in each bucket of duration_bounds().
  durations integer[] not null,
  primary key (team_id, workflow_id, hour)
);
create index alert_call_hours_team on alert_call_hours (team_id, hour);

create table alert_call_folds (
  team_id uuid primary key references teams on delete cascade,
  -- The hours before are in alert_call_hours.
  until timestamptz(3) not null
);

create index monitoring_configs_watched on monitoring_configs (team_id)
  where anomaly_detection_enabled or drift_alert_enabled or sentiment_tracking_enabled;
create index alerts_resolved on alerts (team_id, resolved_at) where status = 'RESOLVED';

-- Who has resolved it; null: the watch itself.
alter table alerts add column resolved_by uuid, add column resolved_by_name text;
