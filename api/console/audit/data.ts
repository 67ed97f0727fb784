import { useQuery } from '@tanstack/react-query'
import { api, askRaw, keepRows, queries, read } from '../data/client.ts'

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
  return useQuery({
    queryKey: ['audit', teamId, 'entries', filter, page],
    queryFn: () => listEntries(teamId, filter, page),
    enabled: teamId !== '',
    ...keepRows,
  })
}

type Parameter = { name: string; schema?: { enum?: string[] } }

/** Everything that an entry can say was done, as the document of the API lists it. */
export function useAuditActions() {
  return useQuery({
    queryKey: ['audit', 'actions'],
    queryFn: async () => {
      const document = await (await askRaw('GET', '/api/openapi.json')).json()
      const parameters: Parameter[] = document.paths?.['/api/audit/team/{teamId}']?.get?.parameters ?? []
      return parameters.find(({ name }) => name === 'action')?.schema?.enum ?? []
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
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
export function useReports(teamId: string) {
  return useQuery({
    queryKey: ['audit', teamId, 'reports'],
    queryFn: () => listReports(teamId),
    enabled: teamId !== '',
    refetchInterval: ({ state }) => (state.data?.some(isMade) ? 2_000 : false),
  })
}

type NewReport = { name: string; type: AuditReport['type']; from: string; to: string }

export async function createReport(teamId: string, json: NewReport): Promise<void> {
  await read(team.reports.$post({ param: { teamId }, json }))
  await forget(teamId)
}

export async function deleteReport(teamId: string, id: string): Promise<void> {
  await read(team.reports[':id'].$delete({ param: { teamId, id } }))
  await forget(teamId)
}

async function listForwarders(teamId: string) {
  return read(team.forwarders.$get({ param: { teamId } }))
}

export type Forwarder = Awaited<ReturnType<typeof listForwarders>>[number]

export function useForwarders(teamId: string) {
  return useQuery({
    queryKey: ['audit', teamId, 'forwarders'],
    queryFn: () => listForwarders(teamId),
    enabled: teamId !== '',
    refetchInterval: 10_000,
  })
}

export type ForwarderFields = Pick<
  Forwarder,
  'name' | 'type' | 'host' | 'port' | 'caCertificate' | 'url' | 'credentialId' | 'enabled'
> & { after?: number }

export async function saveForwarder(teamId: string, id: string | null, json: ForwarderFields): Promise<void> {
  if (id === null) await read(team.forwarders.$post({ param: { teamId }, json }))
  else await read(team.forwarders[':id'].$put({ param: { teamId, id }, json }))
  await forget(teamId)
}

export async function deleteForwarder(teamId: string, id: string): Promise<void> {
  await read(team.forwarders[':id'].$delete({ param: { teamId, id } }))
  await forget(teamId)
}

export async function testForwarder(teamId: string, id: string) {
  const said = await read(team.forwarders[':id'].test.$post({ param: { teamId, id } }))
  await forget(teamId)
  return said
}

async function readRetention(teamId: string) {
  return read(team.retention.$get({ param: { teamId } }))
}

export type Retention = Awaited<ReturnType<typeof readRetention>>

export function useRetention(teamId: string) {
  return useQuery({
    queryKey: ['audit', teamId, 'retention'],
    queryFn: () => readRetention(teamId),
    enabled: teamId !== '',
  })
}

type Policy = Pick<Retention, 'retentionDays' | 'autoDeleteEnabled' | 'reportRetentionDays'>

export async function updateRetention(teamId: string, json: Policy): Promise<void> {
  await read(team.retention.$put({ param: { teamId }, json }))
  await forget(teamId)
}

export async function purgeAudit(teamId: string) {
  const done = await read(team.purge.$post({ param: { teamId } }))
  await forget(teamId)
  return done
}

/** What is done here is an entry too, so the list is read again with the rest. */
function forget(teamId: string) {
  return queries.invalidateQueries({ queryKey: ['audit', teamId] })
}
