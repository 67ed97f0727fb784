import { readPage, useQueryState } from '../../kit/address.ts'
import { Loaded } from '../../kit/states.tsx'
import { nameConstant, Pill, type Tone } from '../../kit/status.tsx'
import { Pager } from '../../kit/tables/pager.tsx'
import { Table } from '../../kit/tables/table.tsx'
import { Age } from '../../kit/time.tsx'
import { useTeam } from '../../shell/role.tsx'
import { useDeliveries } from './data.ts'

const TONES: Record<string, Tone> = { DELIVERED: 'good', FAILED: 'bad', PENDING: 'warn' }

/** The deliveries of alerts, the newest first. */
export function Deliveries() {
  const { teamId } = useTeam()
  const [query, , linkTo] = useQueryState({ tab: 'usage', page: '' })
  const found = useDeliveries(teamId, readPage(query.page))
  return (
    <section>
      <h2>What was sent</h2>
      <Loaded query={found} rows={3}>
        {(list) =>
          list.totalElements === 0 ? (
            <p className="quiet">Nothing in the last 30 days.</p>
          ) : (
            <>
              <Table
                label="What was sent"
                rows={list.content}
                keyOf={({ id }) => id}
                columns={[
                  {
                    heading: 'Status',
                    cell: ({ status, lastError, attempts }) => (
                      <>
                        <Pill tone={TONES[status]}>{nameConstant(status)}</Pill>
                        {lastError && (
                          <div className="quiet said">
                            {lastError} ({attempts} {attempts === 1 ? 'attempt' : 'attempts'})
                          </div>
                        )}
                      </>
                    ),
                  },
                  { heading: 'Alert', cell: ({ title }) => <span className="said">{title}</span> },
                  { heading: 'Severity', cell: ({ severity }) => nameConstant(severity) },
                  { heading: 'To', cell: ({ channelName, target }) => channelName ?? target },
                  { heading: 'Made', cell: ({ createdAt }) => <Age at={createdAt} /> },
                ]}
              />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
    </section>
  )
}
