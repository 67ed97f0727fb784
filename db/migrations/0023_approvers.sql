-- Whom the approvers of the versions of before meant. In a transaction of its own, which locks no table: this reads every
-- version, while processes of the release before go on.

-- Escapes that JSON may have and PostgreSQL cannot read (NUL, lone surrogates) are cut out before the addresses are read.
update workflow_versions v set approver_ids = coalesce((
    select json_object_agg(lower(u.email), u.id)
    from workflows w join members m on m.team_id = w.team_id join users u on u.id = m.user_id
    where w.id = v.workflow_id and lower(u.email) in (
      select lower(approver #>> '{}')
      from json_array_elements(
          regexp_replace(v.nodes::text, '(\\\\)|\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\1', 'g')::json) node
        cross join lateral json_array_elements(
          case when json_typeof(node->'config'->'approvers') = 'array' then node->'config'->'approvers' end) approver
      where node->>'type' = 'APPROVAL' and json_typeof(approver) = 'string')), '{}')
  where v.approver_ids is null and v.nodes::text like '%"APPROVAL"%@%';
