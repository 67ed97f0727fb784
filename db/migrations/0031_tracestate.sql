-- The W3C tracestate that came with the traceparent of the request that a run was accepted by: it goes with the trace
-- into the run and out of it. Null if there was none, or if the request was not traced.
alter table executions add column tracestate text;
