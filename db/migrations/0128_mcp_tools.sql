-- The tools that MCP clients of a team are offered: the MCP_TRIGGER nodes of its active workflows. A name is there once
-- in a team. A process of the release before may switch a workflow off without removing its rows: who reads them asks
-- whether the workflow is active.
create table mcp_tools (
  team_id uuid not null references teams on delete cascade,
  -- By its bytes, so that the order of pages does not depend on a locale.
  name text collate "C" not null,
  workflow_id uuid not null references workflows on delete cascade,
  node_id text not null,
  -- {description, inputSchema}
  tool json not null,
  primary key (team_id, name)
);
create index mcp_tools_workflow on mcp_tools (workflow_id);
