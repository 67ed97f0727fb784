import { randomUUID } from 'node:crypto'
import { record } from '../../../db/change.ts'
import { type Notice, queueNotice } from '../../../db/monitoring/notices/notices.ts'
import type { Service } from '../service.ts'

/** Offers a test file what it needs to make notices of a team, and to ask for what became of them. */
export function makeNotices(service: Service) {
  const { store } = service
  const path = (teamId: string, rest: string) => `/api/monitoring/teams/${teamId}/${rest}`

  /** Queues a notice, an alert of high severity unless `more` says otherwise. Returns its subject. */
  async function notify(teamId: string, more: Partial<Notice> = {}): Promise<string> {
    const subjectId = randomUUID()
    const notice: Notice = {
      ...{ teamId, kind: 'ALERT', subjectId, workflowId: null, alertType: 'ANOMALY', severity: 'HIGH' },
      ...{
        title: 'Tokens have tripled',
        message: 'In the last hour 3,000 tokens were used; 1,000 were expected.',
      },
      ...more,
    }
    await record(store, (tx) => queueNotice(tx, notice))
    return notice.subjectId
  }

  /** Sets which channels the team's alerts go to. */
  async function route(teamId: string, notificationChannels: string[]): Promise<void> {
    await store.db
      .insertInto('monitoringConfigs')
      .values({ teamId, notificationChannels })
      .onConflict((oc) => oc.column('teamId').doUpdateSet({ notificationChannels }))
      .execute()
  }

  async function add(teamId: string, noun: 'channels' | 'playbooks', json: object, as = service.admin) {
    const { status, body, text } = await service.call('POST', path(teamId, noun), as, json)
    if (status !== 201) throw new Error(`${status}: ${text}`)
    return body
  }

  const read = async (teamId: string, rest: string, as = service.admin) =>
    (await service.call('GET', path(teamId, rest), as)).body

  return { notify, route, add, read, path }
}
