-- Chats with a workflow on other people's pages.
create table widgets (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  -- Null once the workflow is deleted: the widget is then disabled, until it is given another one.
  workflow_id uuid references workflows on delete set null,
  name text not null,
  -- What its address and its snippet have. Everybody who sees the page sees it.
  key text not null unique,
  allowed_origins text[] not null,
  enabled boolean not null,
  -- {colours, title, welcomeText, position}
  theme json not null,
  -- Messages in a day.
  per_visitor integer not null check (per_visitor > 0),
  per_day integer not null check (per_day > 0),
  collect_email boolean not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint widgets_lead_somewhere check (not enabled or workflow_id is not null)
);
create index widgets_of_team on widgets (team_id, created_at, id);
create index widgets_of_workflow on widgets (workflow_id);

create function disable_widget() returns trigger language plpgsql as $$
begin
  new.enabled := false;
  new.updated_at := now();
  return new;
end $$;

comment on function disable_widget is 'A widget whose workflow is deleted is disabled, whoever deletes it.';

create trigger widgets_left before update of workflow_id on widgets for each row
  when (new.workflow_id is null and old.workflow_id is not null) execute function disable_widget();

-- What visitors have done in a day (UTC), for the caps: `who` is a visitor's session, an address (hashed with a key) or,
-- if it is empty, all of them. Unlogged: a crash of PostgreSQL only lets the day begin anew.
create unlogged table widget_counts (
  widget_id uuid not null,
  day date not null,
  who text not null,
  used integer not null,
  primary key (widget_id, day, who)
);
create index widget_counts_day on widget_counts (day);

-- The session of a visitor belongs to nobody of the team: `owner_id` is its own id. `visitor_email` is what they gave.
alter table agent_chat_sessions add column widget_id uuid references widgets on delete cascade,
  add column visitor_email text;
alter table agent_chat_sessions drop constraint agent_chat_sessions_owner_kind_check;
alter table agent_chat_sessions add constraint agent_chat_sessions_owner_kind_check
  check (owner_kind in ('USER', 'SDK_TOKEN', 'VISITOR'));

-- The visitors' sessions of a widget, the newest first, and the sessions of everybody else in a team: those are few.
create index agent_chat_sessions_of_widget on agent_chat_sessions (widget_id, active_at desc, id desc)
  where widget_id is not null;
create index agent_chat_sessions_of_members on agent_chat_sessions (team_id, active_at desc, id desc)
  where widget_id is null;
-- For the retention of what visitors have said.
create index agent_chat_sessions_of_visitors on agent_chat_sessions (created_at) where widget_id is not null;
