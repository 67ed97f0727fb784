-- A team's variables, which expressions read as $vars: not secret, any JSON.
create table variables (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  key text not null check (key ~ '^[A-Za-z_][A-Za-z0-9_]{0,99}$'),
  value json not null,
  description text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  unique (team_id, key)
);
