-- Cases of a workflow that a model judges, all at once. The counters are changed in the statements that end cases.
create table batch_runs (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid not null references workflows on delete cascade,
  name text not null,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
  -- Why it is FAILED or CANCELLED.
  reason text,
  provider text not null,
  model text not null,
  -- No reference: a batch outlives the credential of its judge.
  credential_id uuid not null,
  -- [{name, rubric}] as they were at its start.
  dimensions json not null,
  pass_threshold double precision not null,
  max_cost numeric,
  run_workflow boolean not null,
  concurrency integer not null check (concurrency > 0),
  workflow_version integer not null,
  total_cases integer not null,
  completed_cases integer not null default 0,
  passed_cases integer not null default 0,
  failed_cases integer not null default 0,
  -- What the calls to models took whose results are kept, and those of the executions.
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cost numeric not null default 0,
  calls integer not null default 0,
  unpriced_calls integer not null default 0,
  -- Whose rights it works with.
  started_by_kind text not null,
  started_by_id uuid,
  started_by_name text not null,
  user_id uuid,
  token_id uuid,
  idempotency_key text,
  idempotency_hash bytea,
  created_at timestamptz(3) not null default now(),
  started_at timestamptz(3),
  completed_at timestamptz(3)
);
create index batch_runs_workflow on batch_runs (workflow_id, created_at desc, id desc);
create index batch_runs_team on batch_runs (team_id);
create index batch_runs_created on batch_runs (created_at) where status not in ('PENDING', 'RUNNING');
create index batch_runs_open on batch_runs (created_at) where status in ('PENDING', 'RUNNING');
create unique index batch_runs_key on batch_runs (workflow_id, idempotency_key) where idempotency_key is not null;

create table batch_cases (
  id uuid primary key,
  run_id uuid not null references batch_runs on delete cascade,
  -- From 0.
  place integer not null,
  input json not null,
  -- Of the input, whatever the order of its keys.
  input_hash bytea not null,
  expected_output text,
  -- As it was given, or as the execution made it.
  actual_output text,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED')),
  reason text,
  -- No reference: a result outlives its execution.
  execution_id uuid,
  -- Its execution has ended, and what that cost is counted.
  execution_counted boolean not null default false,
  composite_score double precision,
  passed boolean,
  gold_standard_match boolean,
  gold_standard_rung text
    check (gold_standard_rung in ('EXACT', 'NUMERIC', 'JSON', 'SIMILARITY', 'JUDGE')),
  gold_standard_reasoning text,
  -- While it is RUNNING: until then another process leaves it alone. Without a claim, nobody works on it before that.
  claim uuid,
  claimed_until timestamptz(3),
  started_at timestamptz(3),
  completed_at timestamptz(3),
  unique (run_id, place)
);
create index batch_cases_running on batch_cases (run_id) where status = 'RUNNING';
create index batch_cases_pending on batch_cases (run_id, place) where status = 'PENDING';

-- What the judge said, for each dimension, as soon as it is known: it is not asked again.
create table batch_judgements (
  case_id uuid not null references batch_cases on delete cascade,
  dimension text not null,
  -- Null if the judge gave no usable answer.
  score integer check (score between 1 and 5),
  -- Or why there is none.
  explanation text not null,
  flagged boolean not null default false,
  primary key (case_id, dimension)
);
