-- An e-mail address counts for memberships and approvals once it is confirmed: its owner has opened a link that was
-- mailed to it, or the operator or the instance's admin vouches for it. All accounts of before are confirmed.
alter table users
  add column email_confirmed_at timestamptz(3) default now(),
  -- The address that the user wants instead of `email`; it becomes that when it is confirmed.
  add column pending_email text;
alter table users alter column email_confirmed_at drop default;
create index users_pending_email on users (lower(pending_email)) where pending_email is not null;

-- Processes of the release before change an address without confirming it.
create function doubt_email() returns trigger language plpgsql as $$
begin
  new.email_confirmed_at := null;
  return new;
end $$;
comment on function doubt_email() is 'A new address is not confirmed, unless the same statement says so.';
create trigger users_email_doubted before update of email on users for each row
  when (lower(old.email) <> lower(new.email) and old.email_confirmed_at is not distinct from new.email_confirmed_at)
  execute function doubt_email();

-- What the links in mails carry, as hashes. A token proves one address of one user, once.
create table email_tokens (
  token_hash bytea primary key,
  user_id uuid not null references users on delete cascade,
  email text not null,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null
);
create index email_tokens_user on email_tokens (user_id, created_at);
create index email_tokens_expired on email_tokens (expires_at);

-- The mails that are to be sent, apart from the outbox, which is what Temporal must be told. They stay for a day, since
-- what was sent lately limits what may be sent next.
create table mails (
  id uuid primary key,
  kind text not null,
  user_id uuid not null references users on delete cascade,
  email text not null,
  attempts integer not null default 0,
  due_at timestamptz(3) not null default now(),
  -- When it was sent, or given up.
  settled_at timestamptz(3),
  last_error text,
  created_at timestamptz(3) not null default now()
);
create index mails_due on mails (due_at, id) where settled_at is null;
create index mails_user on mails (user_id, created_at);
create index mails_email on mails (lower(email), created_at);
create index mails_old on mails (created_at);
create trigger mails_told after insert on mails for each row execute function tell_errand();

-- Whom the e-mail addresses in a version's APPROVAL nodes meant when it was saved: {"lower-case address": "user id"},
-- null if there are none, or if a process of the release before saved it.
alter table workflow_versions add column approver_ids json;
