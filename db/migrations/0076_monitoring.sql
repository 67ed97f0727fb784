-- What a team wants to be told of its executions and models. A team without a row has the defaults.
create table monitoring_configs (
  team_id uuid primary key references teams on delete cascade,
  anomaly_detection_enabled boolean not null default false,
  drift_alert_enabled boolean not null default false,
  sentiment_tracking_enabled boolean not null default false,
  -- A multiple of what is expected; a fraction of executions or calls; milliseconds.
  token_usage_spike double precision not null default 3 check (token_usage_spike > 1),
  error_rate_threshold double precision not null default 0.1 check (error_rate_threshold between 0 and 1),
  latency_threshold double precision not null default 30000 check (latency_threshold > 0),
  -- 'email', 'slack', 'webhook' or the id of a channel.
  notification_channels text[] not null default '{}',
  updated_at timestamptz(3) not null default now()
);

-- What a watch over a team's executions, models and chats has found.
create table alerts (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  type text not null check (type in ('ANOMALY', 'DRIFT', 'SENTIMENT')),
  severity text not null check (severity in ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
  -- Null: the team as a whole. No reference: an alert outlives its workflow.
  workflow_id uuid,
  metric text not null,
  observed double precision not null,
  expected double precision,
  threshold double precision,
  window_from timestamptz(3) not null,
  window_to timestamptz(3) not null check (window_to > window_from),
  message text not null,
  sample_execution_ids uuid[] not null default '{}',
  status text not null default 'OPEN' check (status in ('OPEN', 'ACKNOWLEDGED', 'RESOLVED')),
  acknowledged_by uuid,
  acknowledged_by_name text,
  acknowledged_at timestamptz(3),
  resolved_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create index alerts_team on alerts (team_id, created_at desc, id desc);
-- At most one alert at a time is not resolved of a metric of a workflow, or of the team.
create unique index alerts_live on alerts (team_id, metric, coalesce(workflow_id, '00000000-0000-0000-0000-000000000000'))
  where status <> 'RESOLVED';

-- What people are to be told, and playbooks to act upon: written in the transaction that finds it, worked on soon after.
create table notices (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  kind text not null check (kind in ('ALERT', 'EVALUATION')),
  -- The alert, or the evaluation.
  subject_id uuid not null,
  workflow_id uuid,
  -- Null for an evaluation.
  alert_type text check (alert_type in ('ANOMALY', 'DRIFT', 'SENTIMENT')),
  severity text not null check (severity in ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
  title text not null,
  message text not null,
  created_at timestamptz(3) not null default now(),
  -- Until then another process leaves it to the one that has claimed it.
  claimed_until timestamptz(3),
  -- Null until its deliveries and playbook runs are written.
  done_at timestamptz(3),
  unique (kind, subject_id)
);
create index notices_due on notices (created_at) where done_at is null;
