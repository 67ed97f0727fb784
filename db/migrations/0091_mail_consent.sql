-- By the service's own server a team's words go to others than its members only with their yes.

-- What the owner of an address has said to mail of a team. The id is in the links of mails, which are signed.
create table mail_choices (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  -- In lower case, its domain in ASCII.
  address text not null,
  state text check (state in ('YES', 'NO')),
  -- When the only mail that asks was queued.
  asked_at timestamptz(3),
  decided_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  constraint mail_choices_once unique (team_id, address)
);

-- Addresses that want no mail of any team.
create table mail_refusals (
  address text primary key,
  created_at timestamptz(3) not null default now()
);

-- The mails that have asked. No reference: who makes and deletes teams gets no more of them.
create table mail_questions (
  id uuid primary key,
  address text not null,
  team_id uuid not null,
  created_at timestamptz(3) not null default now()
);
create index mail_questions_address on mail_questions (address, created_at);
create index mail_questions_old on mail_questions (created_at);

-- How many mails an account, a team and the instance have sent in an hour.
create table mail_counts (
  key text not null,
  hour timestamptz(3) not null,
  mails integer not null,
  primary key (key, hour)
);
create index mail_counts_old on mail_counts (hour);

-- Who made or changed it last. Null: a process of the release before did.
alter table notification_channels add column changed_by uuid;
alter table scheduled_reports add column changed_by uuid, add column credential_id uuid;

-- Each recipient gets a mail of their own: who has got it, of whom nobody knows, and who has not said yes.
alter table scheduled_report_runs
  add column told text[] not null default '{}',
  add column uncertain text[] not null default '{}',
  add column withheld text[] not null default '{}',
  -- The recipient whose mail is handed over at the moment.
  add column handing text;

-- Mails of kinds that processes of the release before do not know have a due time of their own, so that these leave them
-- alone; their due_at is infinity.
alter table mails
  alter column user_id drop not null,
  add column team_id uuid references teams on delete cascade,
  add column own_due_at timestamptz(3);
create index mails_own_due on mails (own_due_at, id) where settled_at is null and own_due_at is not null;

-- Who has signed up where mail is sent signs in once the link was opened.
alter table users add column link_unopened boolean not null default false;
