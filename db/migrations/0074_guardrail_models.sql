-- With which model a team's guardrails are helped. A team without a row asks none.
create table guardrail_settings (
  team_id uuid primary key references teams on delete cascade,
  -- No reference: when the credential was deleted, the checks that need it must fail, not be left out.
  credential_id uuid,
  model text,
  -- US dollars in a calendar month (UTC).
  monthly_cost_cap numeric(20, 10),
  -- For which checks the model is asked, beside the detectors.
  asks_injection boolean not null,
  asks_content boolean not null,
  updated_at timestamptz(3) not null default now()
);
create index guardrail_settings_credential on guardrail_settings (credential_id) where credential_id is not null;

-- What the models of a team's guardrails took in a calendar month (UTC), in US dollars. A call is in here with what it can
-- cost at most before it is sent, and with what it cost when that is known.
create table guardrail_spending (
  team_id uuid not null references teams on delete cascade,
  month date not null,
  cost numeric not null,
  primary key (team_id, month)
);

-- Guardrails open credentials, too; their id is that of the team.
alter table credential_opens drop constraint credential_opens_opener_kind_check;
alter table credential_opens add constraint credential_opens_opener_kind_check
  check (opener_kind in ('WORKFLOW', 'FORWARDER', 'GUARDRAILS'));

comment on column model_calls.workflow_id is
  'All zeros: a call for guardrails outside of executions, whose execution_id is only its own.';
