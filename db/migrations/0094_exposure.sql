-- The operator's decision that requests through a proxy close nothing of what is open by default (`npx perdure exposure open`):
-- one row while it holds, none otherwise.
create table exposure_decision (
  one boolean primary key default true check (one),
  opened_at timestamptz not null default now()
);
