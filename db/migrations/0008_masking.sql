-- What the instance's admin has set about masking (db/masking.ts): one row, for ever.
create table masking (
  one boolean primary key default true check (one),
  settings json not null default '{}',
  updated_at timestamptz(3)
);
insert into masking default values;
