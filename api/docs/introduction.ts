export const OPERATION = 'Operation'

/** The subjects of the operations under each tag. */
export const TAGS: Record<string, string> = {
  Authentication: 'Accounts, and the sessions of the people who have them',
  Teams: 'Teams and their members',
  'SDK tokens': 'The credentials of programs',
  Workflows: 'Graphs of nodes, their versions, schedules and settings, and how to execute them',
  Executions: 'What has been executed: to read, follow, cancel and repeat',
  Webhooks: 'Addresses that start or resume executions without credentials of this service',
  Forms: 'Pages on which people outside of the team start executions, and answer them',
  'Agent chat': 'Conversations with AI agent workflows, and their replies as they are written',
  Widgets: "Chats on other people's pages",
  Approvals: 'What people are asked to decide',
  Expressions: 'Trying expressions out',
  Guardrails: 'Checking texts for what should not be in them',
  Variables: "A team's values for expressions",
  'Data tables': "Rows that a team's workflows and people keep",
  MCP: 'The service as a server of tools for AI clients',
  Connectors: 'Services that nodes call by what a document or a table says of them',
  Credentials: 'What nodes sign in elsewhere with: sealed, and never read out again',
  Monitoring: 'What calls to models take and cost',
  Evaluation: 'How good the outputs of workflows are, as a model judges them',
  Audit: 'What was done, by whom and from where, and the proof that nobody has altered it',
  [OPERATION]: 'Health, metrics and documentation of the service, and what its operator decides',
}

export const INTRODUCTION = `Durable workflow automation: create workflows, which are graphs of nodes, and execute them
over HTTP. Temporal carries each execution.

**Signing in**: send the session cookie that \`POST /api/auth/login\` sets, or an SDK token of a team as
\`Authorization: Bearer sdk_...\`.

**Roles** in a team, each including the rights of those before it: VIEWER (SDK tokens only), OPERATOR,
BUILDER, ADMIN.

**Errors** all have the body \`{status, error, message, timestamp, path}\`. A 400 adds \`errors\`,
with one entry for each invalid field. A request about a team that the caller is not a member of is 403.

**Ids** are UUIDs, and **times** are ISO 8601 in UTC.

**Rate limits** count the requests of each clock minute. The headers of every response show the
limit and what is left.`
