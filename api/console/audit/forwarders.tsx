import { useState } from 'react'
import { addressOf } from '../data/client.ts'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Switch } from '../kit/controls/input.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useRowWork } from '../kit/work.ts'
import { useTeam } from '../shell/role.tsx'
import {
  deleteForwarder,
  type Forwarder,
  type ForwarderFields,
  saveForwarder,
  testForwarder,
  useForwarders,
} from './data.ts'
import { ForwarderDialog } from './forwarder.tsx'

/** What sends the entries to a SIEM as they are written. */
export function AuditForwarders() {
  const { teamId } = useTeam()
  const found = useForwarders(teamId)
  const pull = addressOf(`/api/audit/team/${teamId}/siem?format=json`)
  const [open, setOpen] = useState<Forwarder | 'new' | null>(null)
  return (
    <>
      <div className="audit-tools">
        <p className="quiet">
          Each entry is sent soon after it is written, in the order of the chain: by syslog over TLS, or by
          HTTPS as JSON with the names of the Elastic Common Schema.
        </p>
        <Button icon="plus" onClick={() => setOpen('new')}>
          New forwarder
        </Button>
      </div>
      <Loaded query={found} rows={3}>
        {(forwarders) =>
          forwarders.length === 0 ? (
            <Empty title="No forwarders" text="Nothing sends this team’s audit elsewhere." />
          ) : (
            <Table
              label="Forwarders"
              rows={forwarders}
              keyOf={({ id }) => id}
              columns={[
                {
                  heading: 'Forwarder',
                  cell: ({ name, type, host, port, url }) => (
                    <>
                      <div className="name">{name}</div>
                      <div className="quiet said">{type === 'SYSLOG' ? `${host}:${port}, TLS` : url}</div>
                    </>
                  ),
                },
                { heading: 'State', cell: (one) => <State forwarder={one} /> },
                { heading: 'Sent to', number: true, cell: ({ after }) => after.toLocaleString() },
                { heading: 'Waiting', number: true, cell: ({ waiting }) => waiting.toLocaleString() },
                { heading: 'Last sent', cell: ({ lastSentAt }) => <Age at={lastSentAt} /> },
                {
                  heading: 'Actions',
                  cell: (one) => <Actions forwarder={one} onEdit={() => setOpen(one)} />,
                },
              ]}
            />
          )
        }
      </Loaded>
      <p className="quiet">
        A SIEM can also fetch the entries itself, with an SDK token of the role Admin: <code>{pull}</code>
        <CopyButton text={pull} label="Copy the address for a SIEM" />
      </p>
      {open && <ForwarderDialog forwarder={open === 'new' ? null : open} onClose={() => setOpen(null)} />}
    </>
  )
}

function State({ forwarder }: { forwarder: Forwarder }) {
  const { enabled, lastError, failures, nextTryAt, missed } = forwarder
  return (
    <>
      {!enabled ? (
        <Pill>Off</Pill>
      ) : failures > 0 ? (
        <Pill tone="bad">Fails</Pill>
      ) : (
        <Pill tone="good">Works</Pill>
      )}
      {enabled && lastError && <div className="quiet said">{lastError}</div>}
      {enabled && failures > 0 && nextTryAt && (
        <div className="quiet">
          Failed {failures} times; tried again <Age at={nextTryAt} />
        </div>
      )}
      {missed > 0 && <div className="quiet">{missed} were purged before they were sent</div>}
    </>
  )
}

function Actions({ forwarder, onEdit }: { forwarder: Forwarder; onEdit: () => void }) {
  const { id, teamId, name, enabled } = forwarder
  const { busy, test } = useRowWork(name)
  const confirm = useConfirm()
  const remove = () =>
    confirm({
      title: 'Delete this forwarder?',
      text: (
        <>
          <strong>{name}</strong> sends nothing from now on.
        </>
      ),
      label: 'Delete',
      danger: true,
      work: async () => {
        await deleteForwarder(teamId, id)
        notify('Forwarder deleted')
      },
    })
  const enable = (next: boolean) =>
    saveForwarder(teamId, id, { ...keep(forwarder), enabled: next }).catch(notifyError)
  return (
    <div className="row">
      <Switch checked={enabled} onChange={(next) => void enable(next)} label={`${name} is on`} />
      <Button
        small
        busy={busy}
        aria-label={`Test ${name}`}
        onClick={() => test(() => testForwarder(teamId, id))}
      >
        Test
      </Button>
      <Button small aria-label={`Edit ${name}`} onClick={onEdit}>
        Edit
      </Button>
      <Button small aria-label={`Delete ${name}`} onClick={remove}>
        Delete
      </Button>
    </div>
  )
}

/** A change takes all settings of a forwarder. */
function keep({
  name,
  type,
  host,
  port,
  caCertificate,
  url,
  credentialId,
  enabled,
}: Forwarder): ForwarderFields {
  return { name, type, host, port, caCertificate, url, credentialId, enabled }
}
