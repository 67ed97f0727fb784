-- What searches texts, by any part of them, within one team: both come with PostgreSQL.
create extension if not exists pg_trgm;
create extension if not exists btree_gin;

-- The chat that the execution belongs to: that of its message, or of the execution that started it. Only the owner of
-- the chat and the team's admins may read its values.
alter table executions add column chat_session_id uuid;

-- For how many days the messages of chats are kept; without it, until they are deleted.
alter table teams add column chat_retention_days integer check (chat_retention_days between 1 and 3650);

-- A conversation with a workflow.
create table agent_chat_sessions (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  workflow_id uuid not null references workflows on delete cascade,
  -- A user or an SDK token. It stays when they are gone: then only admins read it.
  owner_kind text not null check (owner_kind in ('USER', 'SDK_TOKEN')),
  owner_id uuid not null,
  title text not null,
  -- Whether the title is to be cut from the first message.
  untitled boolean not null,
  -- How many messages it shows.
  message_count integer not null default 0,
  last_message_at timestamptz(3),
  -- The last message, or the creation: lists are in this order.
  active_at timestamptz(3) not null default now(),
  -- What the messages up to `summary_until` came to, as a model has told it.
  summary text,
  summary_until bigint not null default 0,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create index agent_chat_sessions_owned on agent_chat_sessions (team_id, owner_id, active_at desc, id desc);
create index agent_chat_sessions_of_team on agent_chat_sessions (team_id, active_at desc, id desc);
create index agent_chat_sessions_of_workflow on agent_chat_sessions (workflow_id);

-- A message and the reply to it have the same execution. The reply is STREAMING until its text is saved.
create table agent_chat_messages (
  id uuid primary key,
  session_id uuid not null references agent_chat_sessions on delete cascade,
  -- Those of the session, for the search.
  team_id uuid not null,
  owner_id uuid not null,
  seq bigint generated always as identity,
  role text not null check (role in ('user', 'assistant')),
  status text not null check (status in ('STREAMING', 'COMPLETE', 'FAILED', 'STOPPED')),
  content text not null,
  -- Why there is no reply.
  error text,
  execution_id uuid not null,
  idempotency_key text,
  -- What all calls to models of the execution took together.
  input_tokens bigint,
  output_tokens bigint,
  -- When the reply is to be saved: its execution has ended.
  due_at timestamptz,
  attempts integer not null default 0,
  created_at timestamptz(3) not null default clock_timestamp(),
  unique (session_id, seq)
);
-- One reply at a time.
create unique index agent_chat_messages_streaming on agent_chat_messages (session_id) where status = 'STREAMING';
create unique index agent_chat_messages_idempotency on agent_chat_messages (session_id, idempotency_key)
  where idempotency_key is not null;
create index agent_chat_messages_of_execution on agent_chat_messages (execution_id);
create index agent_chat_messages_due on agent_chat_messages (due_at) where status = 'STREAMING';
create index agent_chat_messages_kept on agent_chat_messages (team_id, created_at);

-- Sessions that are gone, and of which executions may be left.
create table agent_chat_purges (
  session_id uuid primary key,
  created_at timestamptz(3) not null default now()
);

-- The operator classes are where an earlier installation may have put the extensions.
do $$
declare
  trigrams text := (select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
    where e.extname = 'pg_trgm');
  plain text := (select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
    where e.extname = 'btree_gin');
begin
  execute format('create index agent_chat_sessions_search on agent_chat_sessions
    using gin (team_id %1$s.uuid_ops, owner_id %1$s.uuid_ops, title %2$s.gin_trgm_ops)', plain, trigrams);
  execute format('create index agent_chat_messages_search on agent_chat_messages
    using gin (team_id %1$s.uuid_ops, owner_id %1$s.uuid_ops, content %2$s.gin_trgm_ops)', plain, trigrams);
end $$;

create or replace function is_awaited(run uuid, parent uuid, detached boolean) returns boolean language plpgsql as $$
begin
  return not detached and exists (select from executions where id = parent and status in ('PENDING', 'RUNNING'))
    or exists (select from hook_answers where execution_id = run)
    or exists (select from agent_chat_messages where execution_id = run and status = 'STREAMING');
end $$;

comment on function is_awaited is 'Whether somebody may still read the outputs of an execution that does not keep them: its parent, the webhook
call that started it, or whoever saves its reply in a chat.';

create function end_reply() returns trigger language plpgsql as $$
begin
  update agent_chat_messages set due_at = now()
    where execution_id = coalesce(new.id, old.id) and status = 'STREAMING';
  if found then
    perform pg_notify('outbox', '');
  end if;
  return null;
end $$;

comment on function end_reply is 'The reply of an execution that has ended, or is gone, is due to be saved.';

create trigger executions_reply after update of status on executions for each row
  when (new.trigger = 'CHAT' and old.status in ('PENDING', 'RUNNING') and new.status not in ('PENDING', 'RUNNING'))
  execute function end_reply();
create trigger executions_reply_lost after delete on executions for each row
  when (old.trigger = 'CHAT') execute function end_reply();

create function leave_reply() returns trigger language plpgsql as $$
begin
  perform wipe_unkept(id, keep_outputs) from executions
    where id = old.execution_id and not (keep_inputs and keep_outputs) and status not in ('PENDING', 'RUNNING')
      and not is_awaited(id, parent_id, detached);
  perform tell_run(old.execution_id);
  return null;
end $$;

comment on function leave_reply is 'A reply that is saved, or gone, needs the outputs of its execution no more: they go if they are not kept. Those
who stream it are told.';

create trigger agent_chat_messages_settled after update of status on agent_chat_messages for each row
  when (old.status = 'STREAMING' and new.status <> 'STREAMING') execute function leave_reply();
create trigger agent_chat_messages_gone after delete on agent_chat_messages for each row
  when (old.role = 'assistant') execute function leave_reply();

create function purge_session() returns trigger language plpgsql as $$
begin
  insert into agent_chat_purges (session_id) values (old.id) on conflict do nothing;
  return null;
end $$;

comment on function purge_session is 'What is left of the executions of a chat goes with it, whoever deletes it.';

create trigger agent_chat_sessions_gone after delete on agent_chat_sessions for each row
  execute function purge_session();
