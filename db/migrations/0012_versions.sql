-- The version whose graph a restored one took over.
alter table workflow_versions add column restored_from integer;

-- No run without its version: a start and the deletion of its version at the same moment cannot both happen.
create index executions_version on executions (workflow_id, workflow_version);
alter table executions add constraint executions_version_fkey
  foreign key (workflow_id, workflow_version) references workflow_versions (workflow_id, version);
