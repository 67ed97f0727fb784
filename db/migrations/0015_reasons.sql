-- Why a run that is under way is cancelled, where nobody asked for it in person: what its end says then.
alter table executions add column cancel_reason text;

create or replace function cancel_run(run uuid, why text) returns void language plpgsql as $$
declare
  stood text := (select status from executions where id = run for update);
begin
  if stood = 'PENDING' then
    delete from outbox where subject_id = run and kind = 'START';
    update executions set status = 'CANCELLED', completed_at = now(), error_message = why,
      cancel_requested_at = coalesce(cancel_requested_at, now()) where id = run;
  elsif stood = 'RUNNING' then
    -- The first to ask is the reason.
    update executions set cancel_requested_at = now(), cancel_reason = why
      where id = run and cancel_requested_at is null;
  else
    return;
  end if;
  insert into outbox (kind, subject_id, due_at) values ('CANCEL', run, now()) on conflict do nothing;
end $$;
