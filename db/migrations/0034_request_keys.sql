-- Under which key a node's request was sent last, and an HMAC of the request: a retry of the execution sends the same
-- request under the same key if no answer came. An empty hash says that an answer came.
alter table node_executions add column request_key text, add column request_hash bytea;
