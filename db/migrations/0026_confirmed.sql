-- Each stored output is looked for once, some time after its execution has ended, whether any record names it. Apart from
-- 0027_reads, which locks executions: who stores an output locks blobs first, and everybody else executions.
-- Those of before are left alone: to look for all of them would take hours.
alter table blobs add column confirmed boolean not null default true;
alter table blobs alter column confirmed set default false;
