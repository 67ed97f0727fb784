-- The entries that are signed by themselves, of which there are none at first. Without it, the first process of a release
-- would read a whole audit log to see that.
create index audit_entries_signed on audit_entries (team_id, seq) where mac is not null;
