-- The bytes of a file, which lie in `file_pieces`. Executions name it by their rows in `execution_files`: a copy is such a
-- row, and when the last one goes, the bytes go too. No reference to the team: when that is gone, the pieces are still
-- removed in batches.
create table stored_files (
  id uuid primary key,
  team_id uuid not null,
  -- What of the team's room it takes: while it is written, as much as it may come to have.
  bytes bigint not null,
  -- Null while it is written.
  pieces integer,
  -- How many rows of `execution_files` name it.
  copies integer not null default 0,
  touched_at timestamptz not null default now(),
  -- Nobody can read it any more; its pieces are still to be removed.
  removed boolean not null default false
);
create index stored_files_unnamed on stored_files (touched_at) where copies = 0;

-- Sealed, each for its file and its place in there.
create table file_pieces (
  file_id uuid not null references stored_files,
  number integer not null,
  sealed bytea not null,
  primary key (file_id, number)
);
-- Nothing compresses what is sealed.
alter table file_pieces alter column sealed set storage external;

-- The files of an execution.
create table execution_files (
  execution_id uuid not null,
  id uuid not null references stored_files,
  team_id uuid not null,
  name text not null,
  mime_type text not null,
  bytes bigint not null,
  -- Taken over whole from an earlier execution, and not counted against the number that an execution may have.
  taken_over boolean not null default false,
  created_at timestamptz(3) not null default now(),
  primary key (execution_id, id),
  constraint execution_files_execution_id_fkey foreign key (execution_id) references executions on delete cascade
    deferrable initially immediate
);
create index execution_files_by_id on execution_files (id);

-- How many bytes the files of a team have together, each counted once.
create table file_usage (
  team_id uuid primary key references teams on delete cascade,
  bytes bigint not null
);

create function count_file_bytes() returns trigger language plpgsql as $$
declare
  before bigint := case when tg_op = 'INSERT' or old.removed then 0 else old.bytes end;
  after bigint := case when tg_op = 'DELETE' or new.removed then 0 else new.bytes end;
  team uuid := case when tg_op = 'INSERT' then new.team_id else old.team_id end;
begin
  if before = after then
    return null;
  end if;
  update file_usage set bytes = bytes + after - before where team_id = team;
  if not found and after > before then
    insert into file_usage as u (team_id, bytes) values (team, after - before)
    on conflict (team_id) do update set bytes = u.bytes + excluded.bytes;
  end if;
  return null;
end $$;

comment on function count_file_bytes is 'Keeps the sum of what the files of a team take up. Who adds to it holds the sum
until the end of the transaction, and compares it with what the team may have.';

create trigger stored_files_counted after insert or delete or update of bytes, removed on stored_files
  for each row execute function count_file_bytes();

create function count_file_copies() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    update stored_files set copies = copies + 1 where id = new.id and not removed;
    if not found then
      raise exception 'the file has been removed' using errcode = '23503';
    end if;
  else
    update stored_files set copies = copies - 1, removed = copies = 1, touched_at = now() where id = old.id;
  end if;
  return null;
end $$;

comment on function count_file_copies is 'A file whose last copy goes can be read no more. The row locks keep a copy that is
made at this moment from being missed.';

create trigger execution_files_counted after insert or delete on execution_files
  for each row execute function count_file_copies();
