import type { N8nDocument } from './cases.ts'

/** The data table that cases work with, whose rows each execution knows by its own id in `grp`. */
const NAME = 'cases'
const COLUMNS = { grp: 'text', name: 'text', n: 'number', ok: 'boolean', at: 'date' } as const

/** Makes the table in Perdure, unless it is there. */
export async function makeTable(teamId: string, ask: (json: unknown) => Promise<unknown>): Promise<void> {
  const columns = Object.entries(COLUMNS).map(([name, type]) => ({ name, type }))
  await ask({ teamId, name: NAME, columns })
}

/** A workflow that makes the table in n8n when its webhook is called. */
export const TABLE_SETUP: N8nDocument & { id: string } = {
  id: 'setup-table',
  name: 'setup-table',
  nodes: [
    {
      ...{ id: '1', name: 'Webhook', type: 'n8n-nodes-base.webhook', typeVersion: 2, position: [0, 0] },
      webhookId: 'setup-table',
      parameters: { httpMethod: 'POST', path: 'setup-table', responseMode: 'lastNode', options: {} },
    } as N8nDocument['nodes'][number],
    {
      ...{ id: '2', name: 'Make', type: 'n8n-nodes-base.dataTable', typeVersion: 1.1, position: [220, 0] },
      parameters: {
        ...{ resource: 'table', operation: 'create', tableName: NAME, options: {} },
        columns: {
          column: Object.entries(COLUMNS).map(([name, type]) => ({
            name,
            type: type === 'text' ? 'string' : type,
          })),
        },
      },
    } as N8nDocument['nodes'][number],
  ],
  connections: { Webhook: { main: [[{ node: 'Make', type: 'main', index: 0 }]] } },
  settings: { executionOrder: 'v1' },
}
