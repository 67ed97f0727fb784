-- Rules that a team has made for its texts; config is by kind, see db/guardrails/rules.ts.
create table guardrail_rules (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  description text,
  kind text not null check (kind in ('REGEX', 'KEYWORD_LIST', 'JAVASCRIPT', 'LLM_PROMPT')),
  enabled boolean not null default true,
  severity text not null check (severity in ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
  action text not null check (action in ('BLOCKED', 'WARNED', 'LOGGED')),
  config json not null,
  -- Counts changes: what a process has made of a rule is good for one version.
  version integer not null default 1,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  unique (team_id, name)
);
