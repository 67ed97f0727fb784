-- no transaction: lists of what a person has done
create index concurrently if not exists audit_entries_person on audit_entries
  (team_id, coalesce(user_id, case when actor_kind = 'USER' then actor_id end), seq);
