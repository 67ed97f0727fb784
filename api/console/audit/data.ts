import { api, askRaw, keepRows, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

/** A write here is an entry too, so each refreshes all that is kept of the team's audit. */
const { useRead, write } = resource('audit')

const team = api.api.audit.team[':teamId']

export type AuditFilter = {
  action: string
  userId: string
  resourceId: string
  outcome: string
  from: string
  to: string
}

async function listEntries(teamId: string, filter: AuditFilter, page: number) {
  const kept = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
  return read(team.$get({ param: { teamId }, query: { ...kept, page: String(page), size: '50' } }))
}

export type AuditEntry = Awaited<ReturnType<typeof listEntries>>['content'][number]

/** A team's audit entries, the newest first. */
export function useAudit(teamId: string, filter: AuditFilter, page: number) {
  return useRead([teamId, 'entries', filter, page], () => listEntries(teamId, filter, page), keepRows)
}

type Parameter = { name: string; schema?: { enum?: string[] } }

/** Everything that an entry can say was done, as the document of the API lists it. */
export function useAuditActions() {
  return useRead(
    ['actions'],
    async () => {
      const document = await (await askRaw('GET', '/api/openapi.json')).json()
      const parameters: Parameter[] = document.paths?.['/api/audit/team/{teamId}']?.get?.parameters ?? []
      return parameters.find(({ name }) => name === 'action')?.schema?.enum ?? []
    },
    { staleTime: Number.POSITIVE_INFINITY },
  )
}

export type Noted = { seq: number; hash: string }

/** Checks the whole chain; `noted` is an entry of it that was noted before. */
export async function verifyAudit(teamId: string, noted: Noted | null) {
  const query = noted ? { seq: String(noted.seq), hash: noted.hash } : {}
  return read(team.verify.$get({ param: { teamId }, query }))
}

export type Verification = Awaited<ReturnType<typeof verifyAudit>>

async function listReports(teamId: string) {
  return read(team.reports.$get({ param: { teamId } }))
}

export type AuditReport = Awaited<ReturnType<typeof listReports>>[number]

export function isMade({ status }: AuditReport): boolean {
  return status === 'PENDING' || status === 'RUNNING'
}

/** The reports on a team's audit, read again while one is being made. */
export function useAuditReports(teamId: string) {
  return useRead([teamId, 'reports'], () => listReports(teamId), {
    refetchInterval: ({ state }) => (state.data?.some(isMade) ? 2_000 : false),
  })
}

type NewReport = Parameters<typeof team.reports.$post>[0]['json']

export async function createAuditReport(teamId: string, json: NewReport): Promise<void> {
  await write(read(team.reports.$post({ param: { teamId }, json })), teamId)
}

export async function deleteAuditReport(teamId: string, id: string): Promise<void> {
  await write(read(team.reports[':id'].$delete({ param: { teamId, id } })), teamId)
}

async function listForwarders(teamId: string) {
  return read(team.forwarders.$get({ param: { teamId } }))
}

export type Forwarder = Awaited<ReturnType<typeof listForwarders>>[number]

export function useForwarders(teamId: string) {
  return useRead([teamId, 'forwarders'], () => listForwarders(teamId), { refetchInterval: 10_000 })
}

export type ForwarderFields = Pick<
  Forwarder,
  'name' | 'type' | 'host' | 'port' | 'caCertificate' | 'url' | 'credentialId' | 'enabled'
> & { after?: number }

export async function saveForwarder(teamId: string, id: string | null, json: ForwarderFields): Promise<void> {
  if (id === null) await write(read(team.forwarders.$post({ param: { teamId }, json })), teamId)
  else await write(read(team.forwarders[':id'].$put({ param: { teamId, id }, json })), teamId)
}

export async function deleteForwarder(teamId: string, id: string): Promise<void> {
  await write(read(team.forwarders[':id'].$delete({ param: { teamId, id } })), teamId)
}

export async function testForwarder(teamId: string, id: string) {
  return write(read(team.forwarders[':id'].test.$post({ param: { teamId, id } })), teamId)
}

async function readRetention(teamId: string) {
  return read(team.retention.$get({ param: { teamId } }))
}

export type Retention = Awaited<ReturnType<typeof readRetention>>

export function useRetention(teamId: string) {
  return useRead([teamId, 'retention'], () => readRetention(teamId))
}

type Policy = Pick<Retention, 'retentionDays' | 'autoDeleteEnabled' | 'reportRetentionDays'>

export async function updateRetention(teamId: string, json: Policy): Promise<void> {
  await write(read(team.retention.$put({ param: { teamId }, json })), teamId)
}

export async function purgeAudit(teamId: string) {
  return write(read(team.purge.$post({ param: { teamId } })), teamId)
}
