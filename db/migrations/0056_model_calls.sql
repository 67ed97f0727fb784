-- Each call to a vendor's model: written before it is sent, and once more when it has ended. No text of it is in here. No
-- references: what a call cost stays known after its execution, its workflow and its team are deleted.
create table model_calls (
  execution_id uuid not null,
  -- The activity that has made it, and its attempt, as Temporal counts them.
  activity_id text not null,
  attempt integer not null,
  -- Whoever carried out that attempt: an attempt of the same number may come again, after a pause for example.
  caller uuid not null,
  -- The call's number within the attempt, from 1.
  call integer not null,
  team_id uuid not null,
  workflow_id uuid not null,
  node_id text not null,
  iteration text not null,
  -- The step of an agent; null for other nodes.
  step integer,
  provider text not null,
  model text not null,
  credential_id uuid,
  -- OPEN is under way: if nobody can be at it any more, it counts as LOST.
  status text not null default 'OPEN' check (status in ('OPEN', 'SUCCESS', 'REFUSED', 'LOST')),
  -- As the vendor has reported them; null if it has not. Those from and into a cache are among the input's, those of
  -- the reasoning among the output's.
  input_tokens integer,
  output_tokens integer,
  cached_tokens integer,
  cache_write_tokens integer,
  reasoning_tokens integer,
  -- US dollars; null if it is not known.
  cost numeric(20, 10),
  -- The price that it was calculated with.
  price json,
  -- Up to the first byte of the answer, and to its end.
  first_ms integer,
  latency_ms integer,
  created_at timestamptz(3) not null default now(),
  primary key (execution_id, activity_id, attempt, caller, call)
);
-- All that the totals of a team need, so that they need not read the rows.
create index model_calls_of_team on model_calls (team_id, created_at) include (execution_id, workflow_id, provider, model,
  status, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost);

-- What a team pays for models, where that is not what the price list says. US dollars for a million tokens.
create table model_prices (
  team_id uuid not null references teams on delete cascade,
  -- Its place in the list, from 0.
  position integer not null,
  -- Null is any.
  provider text,
  -- A model's name; with an asterisk at its end, how the name begins.
  model text not null,
  input_per_million numeric(20, 10) not null,
  cached_input_per_million numeric(20, 10),
  cache_write_per_million numeric(20, 10),
  output_per_million numeric(20, 10) not null,
  -- For calls from then on; null is always.
  valid_from timestamptz(3),
  primary key (team_id, position)
);
