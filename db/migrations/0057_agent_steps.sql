-- A step of an agent has a record of its own: its number, the tool that it calls (null in a turn of the model), and what
-- it got, {"input"}, an envelope as in `output`; the record of an agent that is not done has where it is. Its `iteration` is the node's with `!step`
-- behind, so that the records of a node stay distinct, for processes of the release before too.
alter table node_executions add column step integer, add column tool text, add column agent json;

create or replace function wipe_outputs(run uuid) returns void language plpgsql as $$
begin
  update node_executions set output = null, loop = null, notes = null, agent = null
    where execution_id = run
      and (output is not null or loop is not null or notes is not null or agent is not null);
  delete from blobs where execution_id = run;
  update pauses set data = null, decisions = (
      select coalesce(json_agg(json_build_object('decision', d->'decision', 'by', d->'by', 'at', d->'at',
        'comment', null, 'form', null)), '[]') from json_array_elements(decisions) d)
    where execution_id = run and (data is not null or json_array_length(decisions) > 0);
end $$;
