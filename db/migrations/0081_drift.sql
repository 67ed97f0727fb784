-- Up to where the texts of a team were sampled, for those that watch over them. A team is in here once its flag is set.
create table sampling_cursors (
  team_id uuid not null references teams on delete cascade,
  kind text not null check (kind in ('DRIFT', 'SENTIMENT')),
  -- What ended, or was said, before is sampled.
  sampled_until timestamptz(3) not null,
  -- Until then another process leaves it to the one that has claimed it; that one alone knows the token.
  claimed_until timestamptz(3),
  claim uuid,
  -- When it was last claimed: teams take turns, however far behind one of them is.
  claimed_at timestamptz(3),
  primary key (team_id, kind)
);
create index sampling_cursors_due on sampling_cursors (kind, claimed_at nulls first);

-- What an execution was about: never its text. A sample goes with its execution, and with its workflow and team.
create table drift_samples (
  execution_id uuid not null references executions on delete cascade,
  side text not null check (side in ('INPUT', 'OUTPUT')),
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid not null references workflows on delete cascade,
  ended_at timestamptz(3) not null,
  -- How long the text was, in characters.
  length integer not null check (length >= 0),
  -- The meaning of its beginning, redacted, as a packed row of the model. Null: there was nothing that the model can read.
  model text not null,
  meaning bytea,
  primary key (execution_id, side)
);
create index drift_samples_of_workflow on drift_samples (workflow_id, side, ended_at);
create index drift_samples_team on drift_samples (team_id, ended_at);
create index drift_samples_old on drift_samples (ended_at);

-- How a user's message to an agent sounds, from -1 to 1: never its text. It goes with its message.
create table sentiment_scores (
  message_id uuid primary key references agent_chat_messages on delete cascade,
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid not null references workflows on delete cascade,
  execution_id uuid not null,
  said_at timestamptz(3) not null,
  score real not null check (score between -1 and 1)
);
create index sentiment_scores_of_workflow on sentiment_scores (workflow_id, said_at);
create index sentiment_scores_team on sentiment_scores (team_id, said_at);
create index sentiment_scores_old on sentiment_scores (said_at);

-- How each workflow was when it was last compared with what it was before.
create table shift_checks (
  workflow_id uuid not null references workflows on delete cascade,
  metric text not null,
  team_id uuid not null references teams on delete cascade,
  window_to timestamptz(3) not null,
  state text not null check (state in ('FIRING', 'QUIET', 'INSUFFICIENT_DATA')),
  reason text,
  reference_count integer not null,
  current_count integer not null,
  -- How far it has shifted, and how far it may; null if there was too little to compare.
  statistic double precision,
  threshold double precision,
  observed double precision,
  expected double precision,
  -- In how many windows in a row there was a shift.
  hits integer not null,
  finding json,
  primary key (workflow_id, metric)
);
create index shift_checks_team on shift_checks (team_id);
