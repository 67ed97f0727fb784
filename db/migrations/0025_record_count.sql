-- How many node records an execution had at the position that its projection has read to: the projection writes it
-- together with the position. Null in rows of older releases.
alter table executions add column record_count integer;
