-- no transaction: nearly always empty; counted at each scrape of /metrics, and before an execution is ended as lost
create index concurrently if not exists executions_missing on executions (missing_since)
  where status = 'RUNNING' and missing_since is not null;
