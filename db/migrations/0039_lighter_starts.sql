-- An execution's team is its workflow's, to which another key refers: a second one only locks the team at every start.
-- The keys have an index of their own (0038).
alter table executions drop constraint executions_workflow_id_idempotency_key_key,
  drop constraint executions_team_id_fkey;
