-- The pages that a node has been answered: an attempt that comes again goes on at the first one that is missing.
create table request_pages (
  execution_id uuid not null references executions on delete cascade,
  -- The node's activity within the execution, as of message_notes.
  activity text not null,
  -- From 0.
  number integer not null,
  -- The answer's head and body: zipped, sealed.
  sealed bytea not null,
  primary key (execution_id, activity, number)
);

create or replace function wipe_unkept(run uuid, keeps_outputs boolean) returns void language plpgsql as $$
begin
  delete from execution_files where execution_id = run;
  if not keeps_outputs then
    perform wipe_outputs(run);
    -- They hold the outputs of nodes that have sent something, and what nodes were answered.
    delete from message_notes where execution_id = run;
    delete from request_pages where execution_id = run;
  end if;
end $$;
