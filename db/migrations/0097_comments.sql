-- Comments of functions that are unchanged, in the plain words that db/functions.sql is to have.
comment on function hold_team is
'Holds the team until the transaction ends, so that it is not deleted before; false if there is no such team. Acts hold
it together; one that changes who may do what holds it alone. It waits for the acts under way, and those that come later
fail (55P03) and are tried again, so that only one of them keeps a connection while it waits. An advisory lock, because
no other gets it once one waits for it: a stream of row locks could keep a removal waiting for ever.';
comment on function queue_schedules is
'Each change of what is scheduled queues an errand: make Temporal''s schedules of this workflow what its row says.
At the end of the transaction, so that the order in which a workflow and its version are written does not matter. An
errand that is already queued gets a new id, so that the one who is carrying it out does not settle the new one too.';
comment on function disable_widget is
'A widget whose workflow is deleted is disabled, also if a cascade deletes it.';
comment on function cancel_executions is
'Cancels those of these executions that are open. One that is PENDING ends here and now. One that is RUNNING is
cancelled through Temporal, and can from now on only end CANCELLED. `why` is its error message then, if no person asked
for it. `due`: when the sweeper tells Temporal, unless the caller has done so. Returns the statuses afterwards.';
comment on function is_awaited is
'Whether the outputs of an execution that does not keep them may still be read: by its parent, the webhook call that
started it, or the process that saves its reply in a chat.';
comment on function add_execution_hour is
'Adds an execution to its hour, or with -1 takes it away. The caller holds the lock of folding.';
comment on function execution_hour_changed is
'Counts an execution anew that has ended or changed after its hour may have been folded, which is 15 minutes after the
end of the hour at the earliest.';
comment on function execution_hour_deleted is
'Counts an execution that is deleted before its hour is folded; later it is in the sums already, and stays there. Before
the deletion, because its node records go along, which know of retries.';
comment on function add_durations is 'Adds two lists of counts, bucket by bucket.';
comment on function forget_execution_hours is
'A deleted team takes its hours along. A process that folds them meanwhile is waited for.';
comment on function unfold_model_calls is
'Takes the sums from the hour of a call on away, because it has changed: they are folded again.';
comment on function own_errand is
'The team whose errand it is: errands are taken from one team after the other. A subject that is gone already has none.';
comment on function purge_session is
'The rest of the executions of a chat goes with it, also if a cascade deletes it.';
comment on function audit_keeps_entries is
'Audit entries are added, and not changed; those up to an anchor of their chain can be removed once they are 30 days
old, and what is personal about one can be erased.';
comment on function purge_audit_entries is
'Removes up to `most` entries of a chain, the oldest first, and returns how many. There must be an anchor.';
comment on function erase_audit_details is
'Erases what is personal about the first entries of a person behind an entry, and returns their numbers. An entry must
name them.';
