-- A value that is sealed with the key, so that a process knows at its start whether it has the same one under this id.
-- Null until a process of this release has had the key: those of the release before note the id alone.
alter table seal_keys add column proof bytea;
