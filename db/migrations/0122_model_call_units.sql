-- Calls that no vendor counts in tokens: how many seconds of speech were heard, characters spoken or images made
-- (SECONDS, CHARACTERS, IMAGES). Without a check, which would read the whole table under its lock.
alter table model_calls add column unit text;
alter table model_calls add column units numeric(20, 3);
