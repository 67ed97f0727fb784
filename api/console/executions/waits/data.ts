import { api, FRESH_MS, keepRows, read, sendFile } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'

const { refresh, useRead } = resource('approvals')

export const APPROVAL_STATUSES = ['OPEN', 'APPROVED', 'REJECTED', 'EXPIRED', 'ABANDONED'] as const
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number]

type Filters = { status?: ApprovalStatus; executionId?: string; page?: number; size?: number }

async function listApprovals(teamId: string, { page = 0, size = 20, ...rest }: Filters) {
  const query = { teamId, page: String(page), size: String(size), ...rest }
  return read(api.api.approvals.$get({ query }))
}

export type Approval = Awaited<ReturnType<typeof listApprovals>>['content'][number]

export function useApprovals(teamId: string, filters: Filters) {
  return useRead([teamId, filters], () => listApprovals(teamId, filters), {
    refetchInterval: FRESH_MS,
    ...keepRows,
  })
}

const COUNT_MS = 15_000
const COUNTED = 100

/** How many open ones the caller may decide, of the newest ones: '7' or '100+', '' for none. */
export function useOpenCount(teamId: string, enabled: boolean): string {
  const { data } = useRead([teamId, 'count'], () => listApprovals(teamId, { size: COUNTED }), {
    enabled: enabled && teamId !== '',
    refetchInterval: COUNT_MS,
  })
  const open = data?.content.filter((one) => one.mayDecide).length ?? 0
  return open === 0 ? '' : `${open}${data!.totalElements > COUNTED ? '+' : ''}`
}

const one = api.api.approvals[':id']

type Decision = Parameters<typeof one.$post>[0]['json']

export async function decideApproval(id: string, json: Decision) {
  try {
    return await read(one.$post({ param: { id }, json }))
  } finally {
    // If another user was first, the shown list is out of date too.
    await refresh()
  }
}

/** The values of a form with what the service has answered in the place of each file that was chosen. */
export async function sendChosen(id: string, values: Record<string, unknown>) {
  const send = async (value: unknown): Promise<unknown> => {
    if (Array.isArray(value)) return value.some(isChosen) ? Promise.all(value.map(send)) : value
    if (!isChosen(value)) return value
    const type = value.type || 'application/octet-stream'
    return (await sendFile(`/api/approvals/${id}/files`, value, type, value.name)).json()
  }
  const entries = Object.entries(values).map(async ([name, value]) => [name, await send(value)] as const)
  return Object.fromEntries(await Promise.all(entries))
}

function isChosen(value: unknown): value is File {
  return value instanceof File
}
