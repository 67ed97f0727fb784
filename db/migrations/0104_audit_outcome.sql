-- no transaction: lists of what was refused, or has failed
create index concurrently if not exists audit_entries_outcome on audit_entries (team_id, outcome, seq)
  where outcome <> 'SUCCESS';
