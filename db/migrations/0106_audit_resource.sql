-- no transaction: lists of what was done to one resource
create index concurrently if not exists audit_entries_resource on audit_entries (team_id, resource_id, seq)
  where resource_id is not null;
