-- While a node retries, its record says when the next attempt comes; error_message then says why the last one failed.
-- Null while an attempt is under way, and meaningless once the record has ended.
alter table node_executions add column next_attempt_at timestamptz(3);
drop trigger node_executions_changed on node_executions;
create trigger node_executions_changed before update on node_executions for each row
  when ((old.status, old.started_at, old.completed_at, old.error_message, old.retry_count, old.next_attempt_at)
    is distinct from
    (new.status, new.started_at, new.completed_at, new.error_message, new.retry_count, new.next_attempt_at))
  execute function tell_node();
