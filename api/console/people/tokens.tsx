import { useState } from 'react'
import { addressOf } from '../data/client.ts'
import { serverNow } from '../data/clock.ts'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Field } from '../kit/controls/field.tsx'
import { DateInput, Select, TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age, Time } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { createToken, revokeToken, type SdkToken, useTokens } from './data.ts'
import './team.css'

const ROLES = [
  { value: 'Viewer', label: 'Viewer – reads' },
  { value: 'Operator', label: 'Operator – starts workflows, sends traces' },
  { value: 'Builder', label: 'Builder – changes workflows' },
  { value: 'Admin', label: 'Admin – everything in this team' },
]

type IssuedToken = { name: string; token: string }

/** The settings area "Observability SDK": the team's tokens for programs, and where these send their traces. */
export function TokensPage() {
  const may = useRole()
  const [open, setOpen] = useState(false)
  const [made, setMade] = useState<IssuedToken | null>(null)
  if (!may('ADMIN')) {
    return (
      <>
        <PageHeader title="SDK tokens" />
        <Empty title="Not for your role" text="ADMINs of a team make its SDK tokens." />
      </>
    )
  }
  return (
    <>
      <PageHeader
        title="SDK tokens"
        lead="Programs sign in with these. A token can do what its role allows, in this team only."
      >
        <Button look="primary" icon="plus" onClick={() => setOpen(true)}>
          New token
        </Button>
      </PageHeader>
      {made && <Once {...made} onClose={() => setMade(null)} />}
      <TokenTable />
      <Observability />
      {open && <NewToken onClose={() => setOpen(false)} onMade={setMade} />}
    </>
  )
}

/** A new token, which no other answer of the service has. */
function Once({ name, token, onClose }: IssuedToken & { onClose: () => void }) {
  return (
    <section className="once" aria-label={`The token ${name}`}>
      <h2>The token {name}</h2>
      <p>Copy it now: it is shown only once and never again.</p>
      <code className="secret">{token}</code>
      <div className="row">
        <CopyButton text={token} label="Copy the token" named />
        <Button small onClick={onClose}>
          I have it
        </Button>
      </div>
    </section>
  )
}

function TokenTable() {
  const { teamId } = useTeam()
  const found = useTokens(teamId)
  const confirm = useConfirm()
  const revoke = ({ id, name }: SdkToken) =>
    confirm({
      title: 'Revoke this token?',
      text: (
        <>
          Whatever uses <strong>{name}</strong> is refused from now on. Tokens that it has made go with it.
        </>
      ),
      label: 'Revoke',
      danger: true,
      work: async () => {
        await revokeToken(teamId, id)
        notify('Token revoked')
      },
    })
  return (
    <Loaded query={found} rows={3}>
      {(tokens) =>
        tokens.length === 0 ? (
          <Empty title="No tokens" text="Nothing calls this team’s workflows by a token." />
        ) : (
          <Table
            label="SDK tokens"
            rows={tokens}
            keyOf={({ id }) => id}
            columns={[
              { heading: 'Name', cell: ({ name }) => <span className="name">{name}</span> },
              { heading: 'Role', cell: ({ role }) => role },
              { heading: 'Token', cell: ({ hint }) => <code>{hint}</code> },
              { heading: 'Created', cell: ({ createdAt }) => <Age at={createdAt} /> },
              {
                heading: 'Last used',
                cell: ({ lastUsedAt }) =>
                  lastUsedAt ? <Age at={lastUsedAt} /> : <span className="quiet">Never</span>,
              },
              { heading: 'Expires', cell: (token) => <Expiry token={token} /> },
              {
                heading: 'Revoke',
                cell: (token) => (
                  <Button small aria-label={`Revoke ${token.name}`} onClick={() => revoke(token)}>
                    Revoke
                  </Button>
                ),
              },
            ]}
          />
        )
      }
    </Loaded>
  )
}

function Expiry({ token: { expiresAt } }: { token: SdkToken }) {
  if (!expiresAt) return <span className="quiet">Never</span>
  return Date.parse(expiresAt) <= serverNow() ? <Pill tone="warn">Expired</Pill> : <Time at={expiresAt} />
}

function NewToken({ onClose, onMade }: { onClose: () => void; onMade: (made: IssuedToken) => void }) {
  const { teamId } = useTeam()
  const [name, setName] = useState('')
  const [role, setRole] = useState('Operator')
  const [expires, setExpires] = useState('')
  const send = async () => onMade(await createToken(teamId, { name, role, expiresAt: expires || null }))
  return (
    <FormDialog
      open
      onClose={onClose}
      title="New SDK token"
      label="Create"
      onSubmit={send}
      fields={['name', 'role', 'expiresAt']}
    >
      {(error) => (
        <div className="stack">
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} maxLength={100} onChange={setName} />
          </Field>
          <Field label="Role" error={problemAt(error, 'role')}>
            <Select value={role} onChange={setRole} choices={ROLES} />
          </Field>
          <Field
            label="Expires"
            help="Empty: valid until it is revoked"
            error={problemAt(error, 'expiresAt')}
          >
            <DateInput value={expires} onChange={setExpires} />
          </Field>
        </div>
      )}
    </FormDialog>
  )
}

/** How programs elsewhere send their traces here; the token of the example is the reader's own. */
function Observability() {
  const address = addressOf('/api/telemetry/v1/traces')
  const lines = [
    `export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${address}`,
    'export OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20$TOKEN"',
    'export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf',
  ].join('\n')
  return (
    <section className="part">
      <h2>Observability SDK</h2>
      <p className="quiet">
        Agents that run elsewhere report here with any OpenTelemetry SDK, and a token of the role Operator or
        higher. Their calls of models then stand in Monitoring beside those of this team’s workflows.
      </p>
      <div className="snippet">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
        <pre tabIndex={0}>{lines}</pre>
        <CopyButton text={lines} label="Copy the settings" />
      </div>
    </section>
  )
}
