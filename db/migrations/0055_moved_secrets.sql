-- Whether the secrets that were written into a version have been moved into credentials. Processes of the release
-- before save versions in which they have not.
alter table workflow_versions add column secrets_moved boolean not null default false;
