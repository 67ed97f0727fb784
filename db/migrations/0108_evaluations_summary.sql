-- no transaction: counts and sums of a workflow's evaluations, without reading the rows
create index concurrently if not exists evaluations_summary on evaluations (workflow_id, created_at desc, id desc)
  include (status, failed, composite);
