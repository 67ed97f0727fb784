import type { Host } from '../../n8n/compare.ts'
import type { Answer, Asked } from '../../n8n/mock.ts'
import type { VendorAsking, VendorKey } from '../../n8n/vendors/vendors.ts'
import { createBook } from './sheets.ts'
import type { Asked as VendorAsked } from './vendor.ts'

/** The hosts of services that Perdure has connectors for, and their folders at the mock server. */
export const CONNECTOR_HOSTS: Record<string, string> = {
  'sheets.googleapis.com': 'sheets',
  'api.airtable.com': 'airtable',
  'api.notion.com': 'notion',
  'api.github.com': 'github',
  'www.googleapis.com': 'googleapis',
  'docs.googleapis.com': 'docs',
}

/** The folders of our connectors at the mock server. */
const FOLDERS: Record<string, string> = {
  ...{ 'google-sheets': 'sheets', airtable: 'airtable', notion: 'notion', github: 'github' },
  ...{ 'google-calendar': 'googleapis', 'google-drive': 'googleapis', 'google-docs': 'docs' },
}

/** Credentials of n8n and of Perdure for them. */
export function listConnectorKeys(url: string): VendorKey[] {
  const theirs = {
    clientId: 'id',
    clientSecret: 'secret',
    oauthTokenData: { access_token: 'token', token_type: 'Bearer' },
  }
  const ours = { token: 'token', allowedHosts: [new URL(url).host] }
  const google = ['googleSheetsOAuth2Api', 'googleCalendarOAuth2Api', 'googleDocsOAuth2Api'].map((type) => ({
    id: `google-${type}`,
    type,
    theirs,
  }))
  const plain = [
    { id: 'airtable-key', type: 'airtableTokenApi', theirs: { accessToken: 'token' } },
    {
      id: 'github-key',
      type: 'githubApi',
      theirs: { server: 'https://api.github.com', user: 'ada', accessToken: 'token' },
    },
    { id: 'notion-key', type: 'notionApi', theirs: { apiKey: 'token' } },
  ]
  return [...google, ...plain].map((one) => ({ ...one, as: 'HTTP_BEARER', ours }))
}

const SHEETS = () => ({
  People: [
    ['name', 'n', 'city'],
    ['Ada', 1, 'London'],
    ['Bob', 2, ''],
    ['Cy', 3, 'Oslo'],
    ['Dan', 1, 'Oslo'],
  ],
  'Two words': [[], ['', 'a', '', 'b'], ['', 'x', true, ''], [], ['', '', '', 7]],
  Empty: [],
})

/**
 * Services that keep what they are told: a book for each case, by its name. What a case has left there counts, and not the
 * requests, which n8n and Perdure may make in other ways.
 */
export function createKeepers() {
  const books = new Map<string, ReturnType<typeof createBook>>()
  return {
    answer({ path, query, method, body }: Asked): Answer | undefined {
      const [, own] = /^\/vendors\/sheets(\/.*)$/.exec(path) ?? []
      if (own === undefined) return undefined
      const name = /google-sheets-[a-z0-9-]+/.exec(`${path}${body}`)?.[0] ?? ''
      const book = books.get(name) ?? createBook(SHEETS())
      books.set(name, book)
      const json = body === '' ? {} : JSON.parse(body)
      const reply = book.answer({ method, path: own, query, json } as VendorAsked)
      if (reply === 'cut') throw new Error('it does not hang up')
      return reply
    },
    take(name: string): VendorAsking[] {
      const book = books.get(name)
      books.delete(name)
      if (!book) return []
      const left = book.sheets.map(({ title, rows }) => [title, rows.map(trim)])
      return [{ asked: 'sheets', body: Object.fromEntries(left) }]
    },
  }
}

function trim(cells: unknown[]): unknown[] {
  const end = cells.findLastIndex((cell) => cell !== '' && cell !== null && cell !== undefined)
  return cells.slice(0, end + 1)
}

type GraphNodes = { nodes: { type: string; config: { connector?: string } }[]; edges: unknown[] }

/** Has the nodes of an imported workflow that call services ask the mock server. */
export async function leadToMock(host: Host, id: string, url: string): Promise<void> {
  const { nodes, edges } = await host.ask<GraphNodes>('GET', `/api/workflows/${id}`)
  if (!nodes.some(({ type }) => type === 'CONNECTOR')) return
  const led = nodes.map((node) => {
    const folder = FOLDERS[node.config.connector ?? '']
    return folder === undefined
      ? node
      : { ...node, config: { ...node.config, server: `${url}/vendors/${folder}` } }
  })
  await host.ask('PUT', `/api/workflows/${id}`, { nodes: led, edges })
}
