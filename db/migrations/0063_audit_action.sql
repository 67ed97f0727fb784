-- no transaction: lists of a team's audit entries with one action
create index concurrently if not exists audit_entries_action on audit_entries (team_id, action, seq);
