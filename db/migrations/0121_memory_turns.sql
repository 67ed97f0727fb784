-- What nodes that ask models remember from one execution to the next: a row for each question with its answer.
create table memory_turns (
  id uuid primary key,
  workflow_id uuid not null references workflows on delete cascade,
  -- The hash of the memory's name and key.
  memory bytea not null,
  -- The call that said it: an attempt that comes again writes the same row.
  call_key text not null,
  sealed bytea not null,
  said_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  constraint memory_turns_call unique (workflow_id, memory, call_key)
);
create index memory_turns_newest on memory_turns (workflow_id, memory, id);
create index memory_turns_expiry on memory_turns (expires_at);
