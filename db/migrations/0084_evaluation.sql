-- How the runs of a workflow are judged, or, without a workflow, those of all workflows of a team. Null: not said here.
create table eval_configs (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid unique references workflows on delete cascade,
  enabled boolean,
  provider text check (provider in ('openai', 'anthropic', 'azure_openai', 'google', 'custom')),
  model text,
  -- No reference: when the credential was deleted, judging must fail, and not be left out.
  credential_id uuid,
  sampling_rate integer check (sampling_rate between 0 and 100),
  dimensions text[],
  failure_threshold numeric(3, 2) check (failure_threshold between 1 and 5),
  notify_failures boolean,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index eval_configs_team on eval_configs (team_id) where workflow_id is null;
create index eval_configs_credential on eval_configs (credential_id) where credential_id is not null;

-- What a team has runs judged by, beside groundedness, relevance and safety.
create table eval_dimensions (
  team_id uuid not null references teams on delete cascade,
  name text not null,
  rubric text not null,
  position integer not null,
  primary key (team_id, name)
);

-- The runs that are judged, once each. What a judge says may quote them: it goes with them.
create table evaluations (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid not null references workflows on delete cascade,
  execution_id uuid not null unique references executions on delete cascade,
  status text not null default 'PENDING' check (status in ('PENDING', 'SCORED', 'FAILED', 'SKIPPED')),
  -- Why it is FAILED or SKIPPED: a code.
  reason text,
  provider text,
  model text,
  dimensions text[] not null default '{}',
  composite numeric(3, 2),
  failure_threshold numeric(3, 2),
  -- Null until there is a composite.
  failed boolean,
  flagged boolean not null default false,
  -- When it may be taken; whoever works on it moves it on, so that another one takes it over if they die.
  due_at timestamptz(3) not null default now(),
  claim uuid,
  tries integer not null default 0,
  created_at timestamptz(3) not null default now(),
  judged_at timestamptz(3)
);
create index evaluations_due on evaluations (team_id, due_at) where status = 'PENDING';
create index evaluations_workflow on evaluations (workflow_id, created_at desc, id desc);
create index evaluations_team on evaluations (team_id);
create index evaluations_old on evaluations (created_at);

-- What a judge has said of each dimension, kept as it comes: no dimension is asked twice.
create table evaluation_scores (
  evaluation_id uuid not null references evaluations on delete cascade,
  dimension text not null,
  -- Null: it could not be judged, and reason says why.
  score integer check (score between 1 and 5),
  reason text,
  explanation text,
  flagged boolean not null default false,
  input_tokens bigint not null,
  output_tokens bigint not null,
  -- US dollars; null if it is not known.
  cost numeric,
  primary key (evaluation_id, dimension)
);

-- How many evaluations of a team were begun on a day (UTC).
create table evaluation_days (
  team_id uuid not null references teams on delete cascade,
  day date not null,
  begun integer not null,
  primary key (team_id, day)
);
