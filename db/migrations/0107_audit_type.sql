-- no transaction: lists of what was done to resources of one type
create index concurrently if not exists audit_entries_type on audit_entries (team_id, resource_type, seq);
