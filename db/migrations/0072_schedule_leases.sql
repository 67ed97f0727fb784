-- Which process is telling Temporal about a workflow's schedules. If two did so at once, the calls of one could undo
-- what the other has noted.
create table schedule_leases (
  workflow_id uuid primary key,
  holder uuid not null,
  until timestamptz not null
);
