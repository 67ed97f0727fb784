-- The service that has reported a call to a model, by its telemetry; null for this service's own calls. Such a call never
-- changes, and is added to its hour by whoever stores it, also to one that is folded: no hour is unfolded for it.
alter table model_calls add column service text;

create or replace trigger model_calls_inserted after insert on model_calls for each row
  when (new.created_at < now() - interval '5 minutes' and new.service is null) execute function model_call_changed();

-- The spans that have been taken in, so that each counts once however often it is sent. Removed after 31 days: older spans
-- are refused.
create table telemetry_spans (
  team_id uuid not null references teams on delete cascade,
  trace_id bytea not null,
  span_id bytea not null,
  seen_at timestamptz(3) not null default now(),
  primary key (team_id, trace_id, span_id)
);
create index telemetry_spans_seen on telemetry_spans (seen_at);

-- What spans of models, agents and tools have told, by the hours in which they started. `bucket` is how long they took:
-- see db/telemetry/latency.ts. Tokens are only those of calls to models.
create table telemetry_hours (
  team_id uuid not null references teams on delete cascade,
  hour timestamptz(3) not null,
  service text not null,
  operation text not null,
  provider text not null,
  model text not null,
  agent text not null,
  bucket smallint not null,
  calls integer not null,
  errors integer not null,
  input bigint not null,
  output bigint not null,
  primary key (team_id, hour, service, operation, provider, model, agent, bucket)
);
create index telemetry_hours_hour on telemetry_hours (hour);
