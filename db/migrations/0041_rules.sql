-- Under which rules of the language a version was saved, and whether an expression that reads nothing is an error in it.
-- Versions that exist, and those that processes of the release before save, have the first rules.
alter table workflow_versions
  add column expressions smallint not null default 1 check (expressions in (1, 2)),
  add column strict boolean not null default false;
