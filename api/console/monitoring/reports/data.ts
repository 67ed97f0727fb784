import { useQuery } from '@tanstack/react-query'
import { api, FRESH_MS, keepRows, queries, read } from '../../data/client.ts'

const reports = api.api.monitoring.teams[':teamId']['scheduled-reports']
const one = reports[':id']

export const METRICS = ['token_usage', 'anomalies', 'drift', 'sentiment'] as const
export type Metric = (typeof METRICS)[number]

async function listReports(teamId: string) {
  return read(reports.$get({ param: { teamId } }))
}

export type Report = Awaited<ReturnType<typeof listReports>>[number]

export function useReports(teamId: string) {
  return useQuery({
    queryKey: ['reports', teamId],
    queryFn: () => listReports(teamId),
    enabled: teamId !== '',
    refetchInterval: FRESH_MS * 3,
  })
}

type NewReport = Parameters<typeof reports.$post>[0]['json']

/** Returns the report with warnings of what may keep it from being sent. */
export async function createReport(teamId: string, json: NewReport) {
  return refresh(read(reports.$post({ param: { teamId }, json })))
}

export async function updateReport(teamId: string, id: string, json: NewReport) {
  return refresh(read(one.$put({ param: { teamId, id }, json })))
}

export async function deleteReport(teamId: string, id: string) {
  return refresh(read(one.$delete({ param: { teamId, id } })))
}

export async function sendReport(teamId: string, id: string) {
  return refresh(read(one.send.$post({ param: { teamId, id } })))
}

/** What came of its mails, the latest first. */
export function useReportRuns(teamId: string, id: string) {
  return useQuery({
    queryKey: ['reports', teamId, 'runs', id],
    queryFn: () => read(one.runs.$get({ param: { teamId, id }, query: { size: '20' } })),
    refetchInterval: FRESH_MS,
    ...keepRows,
  })
}

async function refresh<T>(work: Promise<T>): Promise<T> {
  const done = await work
  await queries.invalidateQueries({ queryKey: ['reports'] })
  return done
}
