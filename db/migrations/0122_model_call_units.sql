-- Calls that no vendor counts in tokens: how many seconds of speech were heard, characters spoken or images made.
alter table model_calls add column unit text check (unit in ('SECONDS', 'CHARACTERS', 'IMAGES'));
alter table model_calls add column units numeric(20, 3);
