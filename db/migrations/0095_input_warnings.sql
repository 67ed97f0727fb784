-- What is said in the record of an execution's trigger about the data that it was started with.
alter table executions add column input_warning text;

comment on column executions.input_warning is
  'What became of numbers in input_data that are too large to be kept as numbers; null if there were none.';
