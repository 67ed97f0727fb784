-- The text of a reply while it comes, for readers in other processes and for those who come back: what a process has
-- got in a tenth of a second, as one row of each of its replies. It goes once the reply is saved. Unlogged: a crash of
-- PostgreSQL loses it, and readers then get the rest from the saved reply.
create unlogged table agent_chat_chunks (
  execution_id uuid not null,
  -- A turn of the node that replies, and which attempt of it the text is from: only the last one's counts.
  step integer not null,
  attempt integer not null,
  seq integer not null,
  -- Where in the text of the step it begins, in characters.
  position integer not null,
  -- The turn before it; 0 for the first one.
  after integer not null,
  text text not null,
  -- The step has no more text.
  is_last boolean not null,
  created_at timestamptz(3) not null default now(),
  primary key (execution_id, step, attempt, position, seq)
);

create function drop_chunks() returns trigger language plpgsql as $$
begin
  delete from agent_chat_chunks where execution_id = old.execution_id;
  return null;
end $$;

comment on function drop_chunks is 'The chunks of a reply that is saved, or gone, are needed no more.';

create trigger agent_chat_messages_saved after update of status on agent_chat_messages for each row
  when (old.status = 'STREAMING' and new.status <> 'STREAMING') execute function drop_chunks();
create trigger agent_chat_messages_dropped after delete on agent_chat_messages for each row
  when (old.role = 'assistant') execute function drop_chunks();
