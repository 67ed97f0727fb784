-- Texts of a team whose meaning guardrails look for. The embedding is made from the text by the named model: one row of
-- signed bytes after the other.
create table guardrail_exemplars (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  category text not null,
  text text not null,
  embedding_model text not null,
  embedding bytea not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint guardrail_exemplars_name unique (team_id, name)
);
