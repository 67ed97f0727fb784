-- What a node's evaluation has noted beside its output: {"warnings": [{"path", "message"}], "console": [{"level", "text"}]}.
alter table node_executions add column notes json;

create or replace function wipe_outputs(run uuid) returns void language plpgsql as $$
begin
  update node_executions set output = null, loop = null, notes = null
    where execution_id = run and (output is not null or loop is not null or notes is not null);
  delete from blobs where execution_id = run;
  update pauses set data = null, decisions = (
      select coalesce(json_agg(json_build_object('decision', d->'decision', 'by', d->'by', 'at', d->'at',
        'comment', null, 'form', null)), '[]') from json_array_elements(decisions) d)
    where execution_id = run and (data is not null or json_array_length(decisions) > 0);
end $$;
