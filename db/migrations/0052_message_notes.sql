-- What is known of a mail or a message that a node sends: SENDING is written before the other side can take it, SENT
-- with its answer once it has. A node that finds SENDING and nothing more cannot know whether it was taken.
create table message_notes (
  execution_id uuid not null references executions on delete cascade,
  -- The node's activity, which all its attempts share.
  activity text not null,
  state text not null check (state in ('SENDING', 'SENT')),
  -- The call that has written it: only that one may take it back.
  call uuid not null,
  noted_at timestamptz not null default now(),
  -- That call has ended without an answer: nobody waits for one any more.
  is_over boolean not null default false,
  -- The node's output, sealed.
  sealed bytea,
  primary key (execution_id, activity),
  check ((state = 'SENT') = (sealed is not null))
);
