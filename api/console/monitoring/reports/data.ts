import { api, FRESH_MS, keepRows, read } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'

const { useRead, write } = resource('reports')

const reports = api.api.monitoring.teams[':teamId']['scheduled-reports']
const one = reports[':id']

export const METRICS = ['token_usage', 'anomalies', 'drift', 'sentiment'] as const
export type Metric = (typeof METRICS)[number]

async function listReports(teamId: string) {
  return read(reports.$get({ param: { teamId } }))
}

export type ScheduledReport = Awaited<ReturnType<typeof listReports>>[number]

export function useReports(teamId: string) {
  return useRead([teamId], () => listReports(teamId), { refetchInterval: FRESH_MS * 3 })
}

type NewReport = Parameters<typeof reports.$post>[0]['json']

/** Returns the report with warnings of what may keep it from being sent. */
export async function createReport(teamId: string, json: NewReport) {
  return write(read(reports.$post({ param: { teamId }, json })))
}

export async function updateReport(teamId: string, id: string, json: NewReport) {
  return write(read(one.$put({ param: { teamId, id }, json })))
}

export async function deleteReport(teamId: string, id: string) {
  return write(read(one.$delete({ param: { teamId, id } })))
}

export async function sendReport(teamId: string, id: string) {
  return write(read(one.send.$post({ param: { teamId, id } })))
}

/** The runs with the outcomes of its mails, the latest first. */
export function useReportRuns(teamId: string, id: string) {
  return useRead(
    [teamId, 'runs', id],
    () => read(one.runs.$get({ param: { teamId, id }, query: { size: '20' } })),
    { refetchInterval: FRESH_MS, ...keepRows },
  )
}
