-- What a team may reach besides what the instance's settings say, and what it may not reach.
create table team_egress (
  team_id uuid primary key references teams on delete cascade,
  allow text[] not null,
  deny text[] not null,
  updated_at timestamptz not null
);
