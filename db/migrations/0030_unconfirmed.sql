-- no transaction: the stored outputs that nobody has looked for yet; each is looked for once
create index concurrently if not exists blobs_unconfirmed on blobs (execution_id) where not confirmed;
