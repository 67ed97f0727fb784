-- A token may end by itself.
alter table sdk_tokens add column expires_at timestamptz(3);
