-- The trace context (W3C traceparent) of the request that a run was accepted by: whoever starts and carries the run
-- later, in whatever process, puts its spans under it. Null where nothing is traced.
alter table executions add column traceparent text;

-- Stuck runs are counted at each scrape of /metrics; nearly always there are none.
create index executions_stuck on executions (id) where status = 'RUNNING' and error_message is not null;
